Endpoints are told another host
claims: HTTPProxy Host
seen: host, :authority, x-forwarded-host

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: shop, namespace: shop}
spec:
  virtualhost: {fqdn: shop.test}
  routes:
  - services:
    - {name: web, port: 80, weight: 1, requestHeadersPolicy: {set: [{name: Host, value: one.internal}]}}
    - {name: other, port: 80, weight: 1, protocol: h2c, requestHeadersPolicy: {set: [{name: host, value: two.internal}]}}
    - {name: third, port: 80, weight: 1}
    requestHeadersPolicy: {set: [{name: Host, value: route.internal}]}
  - conditions: [{prefix: /client}]
    services: [{name: web, port: 80}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: wrong, namespace: shop}
spec:
  virtualhost: {fqdn: wrong.test}
  routes:
  - services: [{name: web, port: 80, requestHeadersPolicy: {set: [{name: Host, value: "a b"}]}}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: twice, namespace: shop}
spec:
  virtualhost: {fqdn: twice.test}
  routes:
  - services: [{name: web, port: 80, requestHeadersPolicy: {set: [{name: Host, value: a.test}, {name: host, value: b.test}]}}]

== backends
one: http for=shop/web
two: h2c for=shop/other
three: http for=shop/third

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    host: one.internal
    x-forwarded-host: shop.test
  explain: HTTPProxy shop/shop gets it, on 3 endpoints
$ curl http://shop.test/
  HTTP/1.1 200 OK
  two saw GET / HTTP/2
    :authority: two.internal
    x-forwarded-host: shop.test
  explain: HTTPProxy shop/shop gets it, on 3 endpoints
$ curl http://shop.test/
  HTTP/1.1 200 OK
  three saw GET / HTTP/1.1
    host: route.internal
    x-forwarded-host: shop.test
  explain: HTTPProxy shop/shop gets it, on 3 endpoints
$ curl http://shop.test/client
  HTTP/1.1 200 OK
  one saw GET /client HTTP/1.1
    host: shop.test
    x-forwarded-host: shop.test
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://wrong.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/wrong claims it and is not served: default: Invalid: spec.routes[0].services[0].requestHeadersPolicy.set[0]: "a b" is not a valid host name; write one such as www.example.com
    fix: correct HTTPProxy shop/wrong: as its status says; `sluice validate` shows the place
$ curl http://twice.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/twice claims it and is not served: default: Invalid: spec.routes[0].services[0].requestHeadersPolicy.set[1]: Host cannot be set here; remove it, or set it once in a requestHeadersPolicy
    fix: correct HTTPProxy shop/twice: as its status says; `sluice validate` shows the place

== status
httpproxy shop/shop
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/wrong
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    RouteError=True HeaderPolicyNotValid: spec.routes[0].services[0].requestHeadersPolicy.set[0]: "a b" is not a valid host name; write one such as www.example.com
httpproxy shop/twice
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    RouteError=True HeaderPolicyNotValid: spec.routes[0].services[0].requestHeadersPolicy.set[1]: Host cannot be set here; remove it, or set it once in a requestHeadersPolicy

== validate
  warning: HTTPProxy shop/wrong: default does not serve it: Invalid: spec.routes[0].services[0].requestHeadersPolicy.set[0]: "a b" is not a valid host name; write one such as www.example.com
  warning: HTTPProxy shop/twice: default does not serve it: Invalid: spec.routes[0].services[0].requestHeadersPolicy.set[1]: Host cannot be set here; remove it, or set it once in a requestHeadersPolicy
