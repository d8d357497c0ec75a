Services of a route
claims: HTTPProxy services, HTTPProxy weight, HTTPProxy protocol, HTTPProxy validation, HTTPProxy mirror, IngressRoute TLS with a service
seen: x-service, x-route
answer: x-answer

An IngressRoute has the protocol from an annotation of the Service.

== manifests
apiVersion: v1
kind: Secret
metadata: {name: ca, namespace: shop}
stringData: {ca.crt: {{ca inside}}}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: shop, namespace: shop}
spec:
  virtualhost: {fqdn: shop.test}
  routes:
  - services:
    - {name: one, port: 80, weight: 3, requestHeadersPolicy: {set: [{name: X-Service, value: one}]}, responseHeadersPolicy: {set: [{name: X-Answer, value: one}]}}
    - {name: two, port: 80, weight: 1}
    requestHeadersPolicy: {set: [{name: X-Route, value: all}]}
  - conditions: [{prefix: /alike}]
    services: [{name: one, port: 80}, {name: two, port: 80}]
  - conditions: [{prefix: /some}]
    services: [{name: one, port: 80, weight: 1}, {name: two, port: 80}]
  - conditions: [{prefix: /tls}]
    services: [{name: tls, port: 443, protocol: tls, validation: {caSecret: ca, subjectName: app.internal}}]
  - conditions: [{prefix: /h2}]
    services: [{name: tls, port: 443, protocol: h2, validation: {caSecret: ca, subjectName: app.internal}}]
  - conditions: [{prefix: /h2c}]
    services: [{name: h2c, port: 80, protocol: h2c}]
  - conditions: [{prefix: /name}]
    services: [{name: tls, port: 443, protocol: tls, validation: {caSecret: ca, subjectName: other.internal}}]
  - conditions: [{prefix: /names}]
    services: [{name: tls, port: 443, protocol: tls, validation: {caSecret: ca, subjectNames: [other.internal, app.internal]}}]
  - conditions: [{prefix: /copied}]
    services: [{name: one, port: 80}, {name: copies, port: 80, mirror: true}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: no-ca, namespace: shop}
spec:
  virtualhost: {fqdn: no-ca.test}
  routes:
  - services: [{name: tls, port: 443, protocol: tls, validation: {caSecret: none, subjectName: app.internal}}]
---
apiVersion: v1
kind: Service
metadata: {name: annotated, namespace: shop, annotations: {contour.heptio.com/upstream-protocol.tls: "443,https"}}
spec: {ports: [{name: secure, port: 443, targetPort: {{port tls}}}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: annotated, namespace: shop, labels: {kubernetes.io/service-name: annotated}}
addressType: IPv4
ports: [{name: secure, port: {{port tls}}}]
endpoints: [{addresses: [{{address tls}}]}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: verified, namespace: shop}
spec:
  virtualhost: {fqdn: verified.test}
  routes:
  - match: /
    services: [{name: annotated, port: 443, validation: {caSecret: ca, subjectName: app.internal}}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: unverified, namespace: shop}
spec:
  virtualhost: {fqdn: unverified.test}
  routes:
  - {match: /, services: [{name: annotated, port: 443}]}

== backends
one: http for=shop/one
two: http for=shop/two
tls: h2 for=shop/tls:443 "cert=app.internal by inside"
h2c: h2c for=shop/h2c
copies: http for=shop/copies mirror

== requests
$ x8 curl http://shop.test/
  6 × HTTP/1.1 200 OK from one
  2 × HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/shop gets it, on 2 endpoints
$ curl http://shop.test/
  HTTP/1.1 200 OK
    x-answer: one
  one saw GET / HTTP/1.1
    x-route: all
    x-service: one
  explain: HTTPProxy shop/shop gets it, on 2 endpoints
$ x8 curl http://shop.test/alike
  4 × HTTP/1.1 200 OK from one
  4 × HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/shop gets it, on 2 endpoints
$ x8 curl http://shop.test/some
  8 × HTTP/1.1 200 OK from one
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://shop.test/tls
  HTTP/1.1 200 OK
  tls saw GET /tls HTTP/2
    [tls TLSv1_3, SNI app.internal, ALPN h2]
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://shop.test/h2
  HTTP/1.1 200 OK
  tls saw GET /h2 HTTP/2
    [tls TLSv1_3, SNI app.internal, ALPN h2]
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://shop.test/h2c
  HTTP/1.1 200 OK
  h2c saw GET /h2c HTTP/2
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://shop.test/name
! the certificate is known when the endpoint shows it
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: backend-certificate-name
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://shop.test/names
  HTTP/1.1 200 OK
  tls saw GET /names HTTP/2
    [tls TLSv1_3, SNI app.internal, ALPN h2]
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://shop.test/copied
  HTTP/1.1 200 OK
  one saw GET /copied HTTP/1.1
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ await copies
  copies saw GET /copied HTTP/1.1
$ curl http://no-ca.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: rule-answer
  explain: 503: HTTPProxy shop/no-ca has it, and nothing that it could go to
    fix: HTTPProxy shop/no-ca says Invalid: Service [tls:443] TLS upstream validation policy error: secret not found or misconfigured
$ curl http://verified.test/
  HTTP/1.1 200 OK
  tls saw GET / HTTP/2
    [tls TLSv1_3, SNI app.internal, ALPN h2]
  explain: IngressRoute shop/verified gets it, on 1 endpoint
$ curl http://unverified.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute shop/unverified claims it and is not served: default: Invalid: route "/": service "annotated": TLS without validation is not supported; add validation with caSecret and subjectName
    fix: correct IngressRoute shop/unverified: as its status says; `sluice validate` shows the place

== status
httpproxy shop/shop
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/no-ca
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    ServiceError=True TLSUpstreamValidation: Service [tls:443] TLS upstream validation policy error: secret not found or misconfigured
ingressroute shop/verified
  currentStatus: valid
  description: valid IngressRoute
ingressroute shop/unverified
  currentStatus: invalid
  description: route "/": service "annotated": TLS without validation is not supported; add validation with caSecret and subjectName

== validate
  warning: HTTPProxy shop/no-ca: default does not serve it: Invalid: Service [tls:443] TLS upstream validation policy error: secret not found or misconfigured
  warning: IngressRoute shop/unverified: default does not serve it: Invalid: route "/": service "annotated": TLS without validation is not supported; add validation with caSecret and subjectName
