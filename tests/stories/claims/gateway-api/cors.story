Cross-origin requests
claims: CORS, HTTPRouteCORS
answer: access-control-allow-origin, access-control-allow-methods, access-control-allow-headers, access-control-allow-credentials, access-control-expose-headers, access-control-max-age, vary

A preflight is answered by the rule that would have the request which it asks about.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners: [{name: web, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.test]
  rules:
  - matches: [{path: {value: /items}, method: PUT}]
    filters:
    - type: CORS
      cors:
        allowOrigins: ["https://www.test", "https://*.partner.test"]
        allowMethods: [PUT]
        allowHeaders: [X-Key]
        exposeHeaders: [X-Count]
        allowCredentials: true
        maxAge: 60
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /items}}]
    filters: [{type: CORS, cors: {allowOrigins: ["*"], allowMethods: ["*"], allowHeaders: ["*"]}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /none}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /broken}}]
    filters: [{type: CORS, cors: {allowOrigins: ["https://www.test"]}}]
    backendRefs: [{name: missing, port: 80}]

== backends
web: http for=shop/web "header=Access-Control-Allow-Origin: https://endpoint.test"

== requests
$ curl -X OPTIONS -H 'Origin: https://www.test' -H 'Access-Control-Request-Method: PUT' -H 'Access-Control-Request-Headers: x-key' http://shop.test/items
  HTTP/1.1 204 No Content
    vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers
    access-control-allow-origin: https://www.test
    access-control-allow-credentials: true
    access-control-allow-methods: PUT
    access-control-allow-headers: X-Key
    access-control-max-age: 60
  explain: 204: the CORS filter of HTTPRoute shop/shop answers it
$ curl -X OPTIONS -H 'Origin: https://a.partner.test' -H 'Access-Control-Request-Method: PUT' http://shop.test/items
  HTTP/1.1 204 No Content
    vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers
    access-control-allow-origin: https://a.partner.test
    access-control-allow-credentials: true
    access-control-allow-methods: PUT
    access-control-allow-headers: X-Key
    access-control-max-age: 60
  explain: 204: the CORS filter of HTTPRoute shop/shop answers it
$ curl -X OPTIONS -H 'Origin: https://evil.test' -H 'Access-Control-Request-Method: PUT' http://shop.test/items
  HTTP/1.1 204 No Content
    vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers
  explain: 204: the CORS filter of HTTPRoute shop/shop answers it
$ curl -X OPTIONS -H 'Origin: https://evil.test' -H 'Access-Control-Request-Method: DELETE' -H 'Access-Control-Request-Headers: x-any' http://shop.test/items
  HTTP/1.1 204 No Content
    vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers
    access-control-allow-origin: *
    access-control-allow-methods: DELETE
    access-control-allow-headers: x-any
    access-control-max-age: 5
  explain: 204: the CORS filter of HTTPRoute shop/shop answers it
# No preflight: it asks about no method.
$ curl -X OPTIONS -H 'Origin: https://www.test' http://shop.test/items
  HTTP/1.1 200 OK
    access-control-allow-origin: *
  web saw OPTIONS /items HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl -X PUT -H 'Origin: https://www.test' http://shop.test/items
  HTTP/1.1 200 OK
    vary: Origin
    access-control-allow-origin: https://www.test
    access-control-allow-credentials: true
    access-control-expose-headers: X-Count
  web saw PUT /items HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl -X PUT -H 'Origin: https://evil.test' http://shop.test/items
  HTTP/1.1 200 OK
    vary: Origin
  web saw PUT /items HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl -H 'Origin: https://evil.test' http://shop.test/items
  HTTP/1.1 200 OK
    access-control-allow-origin: *
  web saw GET /items HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/items
  HTTP/1.1 200 OK
    access-control-allow-origin: *
  web saw GET /items HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
# Rules without the filter leave everything to the endpoint.
$ curl -X OPTIONS -H 'Origin: https://www.test' -H 'Access-Control-Request-Method: PUT' http://shop.test/none
  HTTP/1.1 200 OK
    access-control-allow-origin: https://endpoint.test
  web saw OPTIONS /none HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl -H 'Origin: https://www.test' http://shop.test/broken
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
    vary: Origin
    access-control-allow-origin: https://www.test
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: HTTPRoute shop/shop says ResolvedRefs: BackendNotFound: rule 3: Service shop/missing, port 80: there is no such Service
$ curl -X OPTIONS -H 'Origin: https://www.test' -H 'Access-Control-Request-Method: GET' http://shop.test/broken
  HTTP/1.1 204 No Content
    vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers
    access-control-allow-origin: https://www.test
    access-control-max-age: 5
  explain: 204: the CORS filter of HTTPRoute shop/shop answers it

== status
httproute shop/shop
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=False BackendNotFound: rule 3: Service shop/missing, port 80: there is no such Service
