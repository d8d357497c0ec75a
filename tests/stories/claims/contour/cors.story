Which origins browsers may share responses with
claims: HTTPProxy corsPolicy, HTTPProxy CORS
answer: access-control-allow-origin, access-control-allow-methods, access-control-allow-headers, access-control-allow-credentials, access-control-expose-headers, access-control-max-age, access-control-allow-private-network, vary

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: shop, namespace: shop}
spec:
  virtualhost:
    fqdn: shop.test
    corsPolicy:
      allowCredentials: true
      allowOrigin: ["https://client.test", 'http[s]?:\/\/[a-z]+\.partner\.test']
      allowMethods: [GET, POST]
      allowHeaders: [Authorization, Cache-Control]
      exposeHeaders: [Content-Length, X-Total]
      maxAge: 10m
  includes: [{name: part, conditions: [{prefix: /part}]}]
  routes:
  - services: [{name: web, port: 80}]
  - conditions: [{prefix: /closed}]
    directResponsePolicy: {statusCode: 410}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: part, namespace: shop}
spec: {routes: [{services: [{name: web, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: all, namespace: shop}
spec:
  virtualhost: {fqdn: all.test, corsPolicy: {allowOrigin: ["*"], allowMethods: ["*"], maxAge: "0"}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: glob, namespace: shop}
spec:
  virtualhost: {fqdn: glob.test, corsPolicy: {allowOrigin: ["*.partner.test"], allowMethods: [GET]}}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: private, namespace: shop}
spec:
  virtualhost: {fqdn: private.test, corsPolicy: {allowOrigin: ["*"], allowMethods: [GET], allowPrivateNetwork: true}}
  routes: [{services: [{name: web, port: 80}]}]

== backends
web: http for=shop/web "header=Access-Control-Allow-Origin: https://endpoint.test"

== requests
$ curl -H "Origin: https://client.test" http://shop.test/
  HTTP/1.1 200 OK
    vary: Origin
    access-control-allow-origin: https://client.test
    access-control-allow-credentials: true
    access-control-expose-headers: Content-Length, X-Total
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl -H "Origin: https://a.partner.test" http://shop.test/part
  HTTP/1.1 200 OK
    vary: Origin
    access-control-allow-origin: https://a.partner.test
    access-control-allow-credentials: true
    access-control-expose-headers: Content-Length, X-Total
  web saw GET /part HTTP/1.1
  explain: HTTPProxy shop/part gets it, on 1 endpoint
# Not the whole origin.
$ curl -H "Origin: https://a.partner.test.evil.test" http://shop.test/
  HTTP/1.1 200 OK
    vary: Origin
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl -H "Origin: https://apartner.test" http://shop.test/
  HTTP/1.1 200 OK
    vary: Origin
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://shop.test/
  HTTP/1.1 200 OK
    vary: Origin
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl -X OPTIONS -H "Origin: https://client.test" -H "Access-Control-Request-Method: POST" http://shop.test/
  HTTP/1.1 204 No Content
    vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers
    access-control-allow-origin: https://client.test
    access-control-allow-credentials: true
    access-control-allow-methods: GET, POST
    access-control-allow-headers: Authorization, Cache-Control
    access-control-max-age: 600
  explain: 204: the CORS filter of HTTPProxy shop/shop answers it
$ curl -X OPTIONS -H "Origin: https://evil.test" -H "Access-Control-Request-Method: POST" http://shop.test/
  HTTP/1.1 204 No Content
    vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers
  explain: 204: the CORS filter of HTTPProxy shop/shop answers it
$ curl -X OPTIONS -H "Origin: https://client.test" http://shop.test/
  HTTP/1.1 200 OK
    vary: Origin
    access-control-allow-origin: https://client.test
    access-control-allow-credentials: true
    access-control-expose-headers: Content-Length, X-Total
  web saw OPTIONS / HTTP/1.1
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl -H "Origin: https://client.test" http://shop.test/closed
  HTTP/1.1 410 Gone
    x-sluice-cause: rule-answer
    vary: Origin
    access-control-allow-origin: https://client.test
    access-control-allow-credentials: true
    access-control-expose-headers: Content-Length, X-Total
  explain: HTTPProxy shop/shop answers 410 itself
$ curl -H "Origin: https://anybody.test" http://all.test/
  HTTP/1.1 200 OK
    access-control-allow-origin: *
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/all gets it, on 1 endpoint
$ curl -X OPTIONS -H "Origin: https://anybody.test" -H "Access-Control-Request-Method: PATCH" http://all.test/
  HTTP/1.1 204 No Content
    vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers
    access-control-allow-origin: *
    access-control-allow-methods: PATCH
    access-control-max-age: 0
  explain: 204: the CORS filter of HTTPProxy shop/all answers it
$ curl http://glob.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/glob claims it and is not served: default: Invalid: spec.virtualhost.corsPolicy.allowOrigin[0]: "*.partner.test" is read as a regular expression; write one such as https://[^.]+\.example\.com
    fix: correct HTTPProxy shop/glob as its condition says; `sluice validate` shows the place
$ curl -X OPTIONS -H "Origin: https://anybody.test" -H "Access-Control-Request-Method: GET" -H "Access-Control-Request-Private-Network: true" http://private.test/
  HTTP/1.1 204 No Content
    vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers
    access-control-allow-origin: *
    access-control-allow-methods: GET
    access-control-allow-private-network: true
    access-control-max-age: 5
  explain: 204: the CORS filter of HTTPProxy shop/private answers it
$ curl -X OPTIONS -H "Origin: https://anybody.test" -H "Access-Control-Request-Method: GET" http://private.test/
  HTTP/1.1 204 No Content
    vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers
    access-control-allow-origin: *
    access-control-allow-methods: GET
    access-control-max-age: 5
  explain: 204: the CORS filter of HTTPProxy shop/private answers it
$ curl -X OPTIONS -H "Origin: https://anybody.test" -H "Access-Control-Request-Method: GET" -H "Access-Control-Request-Private-Network: true" http://all.test/
  HTTP/1.1 204 No Content
    vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers
    access-control-allow-origin: *
    access-control-allow-methods: GET
    access-control-max-age: 0
  explain: 204: the CORS filter of HTTPProxy shop/all answers it

== status
httpproxy shop/shop
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/part
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
  parents: shop/shop prefix /part -> shop/part
    HTTPProxy shop/shop#prefix /part
    fqdn: shop.test
    currentStatus: valid
    description: valid HTTPProxy
httpproxy shop/all
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/glob
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    CORSError=True PolicyDidNotParse: spec.virtualhost.corsPolicy.allowOrigin[0]: "*.partner.test" is read as a regular expression; write one such as https://[^.]+\.example\.com
httpproxy shop/private
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy

== validate
  warning: HTTPProxy shop/glob: default does not serve it: Invalid: spec.virtualhost.corsPolicy.allowOrigin[0]: "*.partner.test" is read as a regular expression; write one such as https://[^.]+\.example\.com
