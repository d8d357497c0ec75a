Who sees the TLS of a subdomain
claims: Subdomain delegation passthrough, IngressRoute passthrough, IngressRoute permitInsecure

A domain may pass sessions through, and so may a delegate of a domain that ends them.

== manifests
apiVersion: v1
kind: Secret
metadata: {name: wildcard, namespace: corp}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert *.ending.test}}, tls.key: {{key *.ending.test}}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: passing, namespace: corp}
spec:
  virtualhost: {fqdn: .passing.test, tls: {passthrough: true}}
  subdomains:
  - {subdomain: a.passing.test, delegate: {name: inherits, namespace: team}}
  - {subdomain: without.passing.test, delegate: {name: without, namespace: team}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: inherits, namespace: team}
spec:
  tcpproxy: {services: [{name: raw, port: 443}]}
  routes: [{match: /, services: [{name: web, port: 80}]}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: without, namespace: team}
spec: {routes: [{match: /, services: [{name: web, port: 80}]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: ending, namespace: corp}
spec:
  virtualhost: {fqdn: .ending.test, tls: {secretName: wildcard}}
  subdomains:
  - {subdomain: a.ending.test, delegate: {name: passes, namespace: team}}
  - {subdomain: b.ending.test, delegate: {name: served, namespace: team}}
  - {subdomain: c.ending.test, delegate: {name: both, namespace: team}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: passes, namespace: team}
spec:
  virtualhost: {fqdn: a.ending.test, tls: {passthrough: true}}
  tcpproxy: {services: [{name: raw, port: 443}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: served, namespace: team}
spec:
  routes:
  - {match: /, services: [{name: web, port: 80}]}
  - {match: /clear, permitInsecure: true, services: [{name: web, port: 80}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: both, namespace: team}
spec:
  virtualhost: {fqdn: c.ending.test, tls: {passthrough: true, secretName: own}}
  tcpproxy: {services: [{name: raw, port: 443}]}
---
# Without TLS there are no names to tell connections apart by.
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: clear, namespace: team}
spec:
  virtualhost: {fqdn: clear.test}
  tcpproxy: {services: [{name: raw, port: 443}]}
---
# Of a root that is not a valid domain.
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: flat, namespace: team}
spec:
  virtualhost: {fqdn: flat.test, tls: {passthrough: true}}
  tcpproxy: {services: [{name: raw, port: 443}]}
  routes: [{match: /, services: [{name: web, port: 80}]}]

== backends
raw: h2 for=team/raw:443 "cert=a.passing.test"
web: http for=team/web

== requests
$ curl https://a.passing.test/
  HTTP/2 200
  raw saw GET / HTTP/2
    [tls TLSv1_3, SNI a.passing.test, ALPN h2]
  explain: IngressRoute team/inherits gets the TLS stream as it is, on 1 endpoint
$ curl http://a.passing.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: IngressRoute team/inherits gets it, on 1 endpoint
$ curl --insecure https://without.passing.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: IngressRoute team/without claims it and is not served: IngressRoute corp/passing: Invalid: TLS of the domain is passed through, which requires that Spec.TCPProxy be set
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://without.passing.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute team/without claims it and is not served: IngressRoute corp/passing: Invalid: TLS of the domain is passed through, which requires that Spec.TCPProxy be set
    fix: correct the route as its condition says; `sluice validate` shows the place
$ openssl s_client -servername a.ending.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_256_GCM_SHA384
  Peer certificate: CN = a.passing.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: IngressRoute team/passes gets the TLS stream as it is, on 1 endpoint
$ curl http://a.ending.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/ending#a.ending.test has a.ending.test on https only
    fix: ask over https, or write spec.routes beside the tcpproxy
$ curl https://b.ending.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: IngressRoute team/served gets it, on 1 endpoint
$ curl http://b.ending.test/x
  HTTP/1.1 301 Moved Permanently
    location: https://b.ending.test/x
  explain: IngressRoute team/served redirects to https://{host}{path} with 301
$ curl http://b.ending.test/clear/x
  HTTP/1.1 200 OK
  web saw GET /clear/x HTTP/1.1
  explain: IngressRoute team/served gets it, on 1 endpoint
$ curl --insecure https://c.ending.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: IngressRoute team/both claims it and is not served: IngressRoute corp/ending: Invalid: Spec.VirtualHost.TLS: both Passthrough and SecretName were specified
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://clear.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute team/clear claims it and is not served: default: Invalid: Spec.TCPProxy requires that either Spec.TLS.Passthrough or Spec.TLS.SecretName be set
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl --insecure https://clear.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: IngressRoute team/clear claims it and is not served: default: Invalid: Spec.TCPProxy requires that either Spec.TLS.Passthrough or Spec.TLS.SecretName be set
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl --insecure https://flat.test/
  HTTP/2 200
  raw saw GET / HTTP/2
    [tls TLSv1_3, SNI flat.test, ALPN h2]
  explain: IngressRoute team/flat gets the TLS stream as it is, on 1 endpoint
$ curl http://flat.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: IngressRoute team/flat gets it, on 1 endpoint

== status
ingressroute corp/passing
  currentStatus: valid
  description: valid IngressRoute (1 of 2 subdomains); without.passing.test: delegate team/without is invalid
ingressroute team/inherits
  currentStatus: valid
  description: valid IngressRoute
  parents: corp/passing a.passing.test -> team/inherits
    IngressRoute corp/passing#a.passing.test
    fqdn: a.passing.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute team/without
  currentStatus: invalid
  description: TLS of the domain is passed through, which requires that Spec.TCPProxy be set
  parents: corp/passing without.passing.test -> team/without
    IngressRoute corp/passing#without.passing.test
    fqdn: without.passing.test
    currentStatus: invalid
    description: TLS of the domain is passed through, which requires that Spec.TCPProxy be set
ingressroute corp/ending
  currentStatus: valid
  description: valid IngressRoute (2 of 3 subdomains); c.ending.test: delegate team/both is invalid
ingressroute team/passes
  currentStatus: valid
  description: valid IngressRoute
  parents: corp/ending a.ending.test -> team/passes
    IngressRoute corp/ending#a.ending.test
    fqdn: a.ending.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute team/served
  currentStatus: valid
  description: valid IngressRoute
  parents: corp/ending b.ending.test -> team/served
    IngressRoute corp/ending#b.ending.test
    fqdn: b.ending.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute team/both
  currentStatus: invalid
  description: Spec.VirtualHost.TLS: both Passthrough and SecretName were specified
  parents: corp/ending c.ending.test -> team/both
    IngressRoute corp/ending#c.ending.test
    fqdn: c.ending.test
    currentStatus: invalid
    description: Spec.VirtualHost.TLS: both Passthrough and SecretName were specified
ingressroute team/clear
  currentStatus: invalid
  description: Spec.TCPProxy requires that either Spec.TLS.Passthrough or Spec.TLS.SecretName be set
ingressroute team/flat
  currentStatus: valid
  description: valid IngressRoute

== validate
  warning: IngressRoute team/without: IngressRoute corp/passing does not serve it: Invalid: TLS of the domain is passed through, which requires that Spec.TCPProxy be set
  warning: IngressRoute team/both: IngressRoute corp/ending does not serve it: Invalid: Spec.VirtualHost.TLS: both Passthrough and SecretName were specified
  warning: IngressRoute team/clear: default does not serve it: Invalid: Spec.TCPProxy requires that either Spec.TLS.Passthrough or Spec.TLS.SecretName be set
