Fields of a virtual host that are not done
claims: HTTPProxy rejected clientValidation, HTTPProxy rejected maximumProtocolVersion, HTTPProxy rejected enableFallbackCertificate, HTTPProxy rejected authorization, HTTPProxy rejected rateLimitPolicy, HTTPProxy rejected jwtProviders, HTTPProxy rejected ipAllowPolicy, HTTPProxy rejected ipDenyPolicy, HTTPProxy Invalid virtual hosts

A host whose requests would go unchecked is not served at all.

== manifests
apiVersion: v1
kind: Secret
metadata: {name: tls, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert *.shop.test}}, tls.key: {{key *.shop.test}}}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: client, namespace: shop}
spec:
  virtualhost: {fqdn: client.shop.test, tls: {secretName: tls, clientValidation: {caSecret: ca}}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: maximum, namespace: shop}
spec:
  virtualhost: {fqdn: maximum.shop.test, tls: {secretName: tls, maximumProtocolVersion: "1.2"}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: fallback, namespace: shop}
spec:
  virtualhost: {fqdn: fallback.shop.test, tls: {secretName: tls, enableFallbackCertificate: true}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: authorization, namespace: shop}
spec:
  virtualhost: {fqdn: authorization.shop.test, authorization: {extensionRef: {name: auth}}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: rate, namespace: shop}
spec:
  virtualhost: {fqdn: rate.shop.test, rateLimitPolicy: {local: {requests: 10, unit: minute}}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: jwt, namespace: shop}
spec:
  virtualhost: {fqdn: jwt.shop.test, jwtProviders: [{name: one, remoteJWKS: {uri: "https://keys.test/"}}]}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: allow, namespace: shop}
spec:
  virtualhost: {fqdn: allow.shop.test, ipAllowPolicy: [{source: Peer, cidr: 192.0.2.0/24}]}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: deny, namespace: shop}
spec:
  virtualhost: {fqdn: deny.shop.test, ipDenyPolicy: [{source: Peer, cidr: 192.0.2.0/24}]}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: good, namespace: shop}
spec:
  virtualhost: {fqdn: good.shop.test, tls: {secretName: tls}}
  routes: [{services: [{name: web, port: 80}]}]

== backends
web: http for=shop/web

== requests
$ curl https://good.shop.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/good gets it, on 1 endpoint
$ curl --insecure https://client.shop.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/client claims it and is not served: default: Invalid: spec.virtualhost.tls.clientValidation is not supported; remove it
    fix: correct HTTPProxy shop/client as its condition says; `sluice validate` shows the place
$ curl http://client.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/client claims it and is not served: default: Invalid: spec.virtualhost.tls.clientValidation is not supported; remove it
    fix: correct HTTPProxy shop/client as its condition says; `sluice validate` shows the place
$ curl --insecure https://maximum.shop.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/maximum claims it and is not served: default: Invalid: spec.virtualhost.tls.maximumProtocolVersion is not supported; remove it
    fix: correct HTTPProxy shop/maximum as its condition says; `sluice validate` shows the place
$ curl --insecure https://fallback.shop.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/fallback claims it and is not served: default: Invalid: spec.virtualhost.tls.enableFallbackCertificate is not supported; remove it
    fix: correct HTTPProxy shop/fallback as its condition says; `sluice validate` shows the place
$ curl http://authorization.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/authorization claims it and is not served: default: Invalid: spec.virtualhost.authorization is not supported; remove it
    fix: correct HTTPProxy shop/authorization as its condition says; `sluice validate` shows the place
$ curl http://rate.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/rate claims it and is not served: default: Invalid: spec.virtualhost.rateLimitPolicy is not supported; remove it
    fix: correct HTTPProxy shop/rate as its condition says; `sluice validate` shows the place
$ curl http://jwt.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/jwt claims it and is not served: default: Invalid: spec.virtualhost.jwtProviders is not supported; remove it
    fix: correct HTTPProxy shop/jwt as its condition says; `sluice validate` shows the place
$ curl http://allow.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/allow claims it and is not served: default: Invalid: spec.virtualhost.ipAllowPolicy is not supported; remove it
    fix: correct HTTPProxy shop/allow as its condition says; `sluice validate` shows the place
$ curl http://deny.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/deny claims it and is not served: default: Invalid: spec.virtualhost.ipDenyPolicy is not supported; remove it
    fix: correct HTTPProxy shop/deny as its condition says; `sluice validate` shows the place

== status
httpproxy shop/client
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.virtualhost.tls.clientValidation is not supported; remove it
httpproxy shop/maximum
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.virtualhost.tls.maximumProtocolVersion is not supported; remove it
httpproxy shop/fallback
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.virtualhost.tls.enableFallbackCertificate is not supported; remove it
httpproxy shop/authorization
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.virtualhost.authorization is not supported; remove it
httpproxy shop/rate
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.virtualhost.rateLimitPolicy is not supported; remove it
httpproxy shop/jwt
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.virtualhost.jwtProviders is not supported; remove it
httpproxy shop/allow
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.virtualhost.ipAllowPolicy is not supported; remove it
httpproxy shop/deny
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.virtualhost.ipDenyPolicy is not supported; remove it
httpproxy shop/good
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy

== validate
  warning: HTTPProxy shop/client: default does not serve it: Invalid: spec.virtualhost.tls.clientValidation is not supported; remove it
  warning: HTTPProxy shop/maximum: default does not serve it: Invalid: spec.virtualhost.tls.maximumProtocolVersion is not supported; remove it
  warning: HTTPProxy shop/fallback: default does not serve it: Invalid: spec.virtualhost.tls.enableFallbackCertificate is not supported; remove it
  warning: HTTPProxy shop/authorization: default does not serve it: Invalid: spec.virtualhost.authorization is not supported; remove it
  warning: HTTPProxy shop/rate: default does not serve it: Invalid: spec.virtualhost.rateLimitPolicy is not supported; remove it
  warning: HTTPProxy shop/jwt: default does not serve it: Invalid: spec.virtualhost.jwtProviders is not supported; remove it
  warning: HTTPProxy shop/allow: default does not serve it: Invalid: spec.virtualhost.ipAllowPolicy is not supported; remove it
  warning: HTTPProxy shop/deny: default does not serve it: Invalid: spec.virtualhost.ipDenyPolicy is not supported; remove it
