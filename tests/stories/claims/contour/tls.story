TLS of an HTTPProxy: ended here, passed through, or taken off for a service of bytes
claims: HTTPProxy tls.secretName, HTTPProxy minimumProtocolVersion, HTTPProxy passthrough, HTTPProxy permitInsecure, HTTPProxy tcpproxy, HTTPProxy include, Status Values

== manifests
apiVersion: v1
kind: Secret
metadata: {name: tls, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert *.shop.test}}, tls.key: {{key *.shop.test}}}
---
apiVersion: v1
kind: Secret
metadata: {name: kept, namespace: other}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert kept.shop.test}}, tls.key: {{key kept.shop.test}}}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: ended, namespace: shop}
spec:
  virtualhost: {fqdn: ended.shop.test, tls: {secretName: tls}}
  routes:
  - {services: [{name: web, port: 80}]}
  - {conditions: [{prefix: /clear}], permitInsecure: true, services: [{name: web, port: 80}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: newest, namespace: shop}
spec:
  virtualhost: {fqdn: newest.shop.test, tls: {secretName: tls, minimumProtocolVersion: "1.3"}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: passed, namespace: shop}
spec:
  virtualhost: {fqdn: passed.shop.test, tls: {passthrough: true}}
  tcpproxy: {include: {name: bytes, namespace: team}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: bytes, namespace: team}
spec: {tcpproxy: {services: [{name: tls, port: 443}]}}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: taken-off, namespace: shop}
spec:
  virtualhost: {fqdn: off.shop.test, tls: {secretName: tls}}
  tcpproxy: {services: [{name: web, port: 80}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: missing, namespace: shop}
spec:
  virtualhost: {fqdn: missing.shop.test, tls: {secretName: none}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: kept, namespace: shop}
spec:
  virtualhost: {fqdn: kept.shop.test, tls: {secretName: other/kept}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: both, namespace: shop}
spec:
  virtualhost: {fqdn: both.shop.test, tls: {secretName: tls, passthrough: true}}
  tcpproxy: {services: [{name: web, port: 80}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: neither, namespace: shop}
spec:
  virtualhost: {fqdn: neither.shop.test, tls: {}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: idle, namespace: shop}
spec: {routes: [{services: [{name: web, port: 80}]}]}

== backends
web: http for=shop/web
tls: h2 for=team/tls:443 cert=passed.shop.test

== requests
$ openssl s_client -servername ended.shop.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = *.shop.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for ended.shop.test ends here; the path decides which route gets a request
$ openssl s_client -servername ended.shop.test -tls1_2
  Protocol version: TLSv1.2
  Ciphersuite: ECDHE-ECDSA-AES128-GCM-SHA256
  Peer certificate: CN = *.shop.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for ended.shop.test ends here; the path decides which route gets a request
$ curl https://ended.shop.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/ended gets it, on 1 endpoint
$ curl http://ended.shop.test/x
  HTTP/1.1 301 Moved Permanently
    location: https://ended.shop.test/x
  explain: HTTPProxy shop/ended redirects to https://{host}{path} with 301
$ curl http://ended.shop.test/clear
  HTTP/1.1 200 OK
  web saw GET /clear HTTP/1.1
  explain: HTTPProxy shop/ended gets it, on 1 endpoint
$ openssl s_client -servername newest.shop.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = *.shop.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for newest.shop.test ends here; the path decides which route gets a request
$ openssl s_client -servername newest.shop.test -tls1_2
! the client takes TLS 1.2 at most
  no TLS: alert 70
  explain: TLS for newest.shop.test ends here; the path decides which route gets a request
$ curl https://passed.shop.test/
  HTTP/2 200
  tls saw GET / HTTP/2
    [tls TLSv1_3, SNI passed.shop.test, ALPN h2]
  explain: HTTPProxy team/bytes gets the TLS stream as it is, on 1 endpoint
$ curl http://passed.shop.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/passed gets it, on 1 endpoint
$ curl --http1.1 https://off.shop.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/taken-off gets what is inside TLS, on 1 endpoint
$ curl http://off.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/taken-off#off.shop.test has off.shop.test on https only
    fix: ask over https, or write spec.routes beside the tcpproxy
$ curl --insecure https://missing.shop.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/missing claims it and is not served: default: Invalid: Spec.VirtualHost.TLS Secret "none" is invalid: not found or is malformed
    fix: correct HTTPProxy shop/missing as its condition says; `sluice validate` shows the place
$ curl http://missing.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/missing claims it and is not served: default: Invalid: Spec.VirtualHost.TLS Secret "none" is invalid: not found or is malformed
    fix: correct HTTPProxy shop/missing as its condition says; `sluice validate` shows the place
$ curl --insecure https://kept.shop.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/kept claims it and is not served: default: Invalid: Spec.VirtualHost.TLS Secret "other/kept" certificate delegation not permitted
    fix: correct HTTPProxy shop/kept as its condition says; `sluice validate` shows the place
$ openssl s_client -servername kept.shop.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = rcgen self signed cert
  Verification error: self-signed certificate
  Server Temp Key: X25519, 253 bits
  explain: the default certificate, and 404: HTTPProxy shop/kept claims it and is not served: default: Invalid: Spec.VirtualHost.TLS Secret "other/kept" certificate delegation not permitted
    fix: correct HTTPProxy shop/kept as its condition says; `sluice validate` shows the place
$ curl --insecure https://both.shop.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/both claims it and is not served: default: Invalid: Spec.VirtualHost.TLS: both Passthrough and SecretName were specified
    fix: correct HTTPProxy shop/both as its condition says; `sluice validate` shows the place
$ curl --insecure https://neither.shop.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/neither claims it and is not served: default: Invalid: Spec.VirtualHost.TLS: neither Passthrough nor SecretName were specified
    fix: correct HTTPProxy shop/neither as its condition says; `sluice validate` shows the place

== status
httpproxy shop/ended
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/newest
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/passed
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy team/bytes
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
  parents: shop/passed tcpproxy -> team/bytes
    HTTPProxy shop/passed#tcpproxy
    fqdn: passed.shop.test
    currentStatus: valid
    description: valid HTTPProxy
httpproxy shop/taken-off
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/missing
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    TLSError=True SecretNotValid: Spec.VirtualHost.TLS Secret "none" is invalid: not found or is malformed
httpproxy shop/kept
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    TLSError=True DelegationNotPermitted: Spec.VirtualHost.TLS Secret "other/kept" certificate delegation not permitted
httpproxy shop/both
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    TLSError=True TLSConfigNotValid: Spec.VirtualHost.TLS: both Passthrough and SecretName were specified
httpproxy shop/neither
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    TLSError=True TLSConfigNotValid: Spec.VirtualHost.TLS: neither Passthrough nor SecretName were specified
httpproxy shop/idle
  currentStatus: orphaned
  description: this HTTPProxy is not part of a delegation chain from a root HTTPProxy
  Valid=False Orphaned: this HTTPProxy is not part of a delegation chain from a root HTTPProxy
    Orphaned=True: this HTTPProxy is not part of a delegation chain from a root HTTPProxy

== validate
  warning: HTTPProxy shop/missing: default does not serve it: Invalid: Spec.VirtualHost.TLS Secret "none" is invalid: not found or is malformed
  warning: HTTPProxy shop/kept: default does not serve it: Invalid: Spec.VirtualHost.TLS Secret "other/kept" certificate delegation not permitted
  warning: HTTPProxy shop/both: default does not serve it: Invalid: Spec.VirtualHost.TLS: both Passthrough and SecretName were specified
  warning: HTTPProxy shop/neither: default does not serve it: Invalid: Spec.VirtualHost.TLS: neither Passthrough nor SecretName were specified
  warning: HTTPProxy shop/idle: default does not serve it: Orphaned: this HTTPProxy is not part of a delegation chain from a root HTTPProxy
