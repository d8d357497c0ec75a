Header modifiers of rules and of single backends
claims: HTTPRouteBackendRequestHeaderModification, HTTPRouteResponseHeaderModification, Host
seen: x-one, x-two, x-three, x-four, host
answer: x-from, x-gone, x-set

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
  - matches: [{path: {value: /request}}]
    filters:
    - type: RequestHeaderModifier
      requestHeaderModifier:
        set: [{name: X-One, value: rule}]
        add: [{name: X-Two, value: rule}]
        remove: [x-three]
    backendRefs:
    - name: web
      port: 80
      filters:
      - type: RequestHeaderModifier
        requestHeaderModifier: {set: [{name: x-one, value: backend}], add: [{name: x-two, value: backend}]}
    - name: other
      port: 80
  - matches: [{path: {value: /response}}]
    filters:
    - type: ResponseHeaderModifier
      responseHeaderModifier:
        set: [{name: x-set, value: rule}]
        add: [{name: x-from, value: rule}]
        remove: [X-Gone]
    backendRefs:
    - name: web
      port: 80
      filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: x-from, value: backend}]}}]
  - matches: [{path: {value: /missing}}]
    filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-set, value: rule}]}}]
    backendRefs: [{name: none, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: refused, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [refused.test]
  rules:
  - matches: [{path: {value: /host}}]
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Host, value: inside.test}]}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /connection}}]
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [Transfer-Encoding]}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /answer}}]
    filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: Connection, value: close}]}}]
    backendRefs: [{name: web, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: partly, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [partly.test]
  rules:
  - matches: [{path: {value: /host}}]
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Host, value: inside.test}]}}]
    backendRefs: [{name: web, port: 80}]
  - backendRefs: [{name: web, port: 80}]

== backends
web: http for=shop/web "header=X-From: endpoint" "header=X-Gone: yes"
other: http for=shop/other

== requests
$ curl -H 'x-one: client' -H 'x-two: client' -H 'x-three: client' -H 'x-four: client' http://shop.test/request
  HTTP/1.1 200 OK
    x-from: endpoint
    x-gone: yes
  web saw GET /request HTTP/1.1
    host: shop.test
    x-one: backend
    x-two: client
    x-two: rule
    x-two: backend
    x-four: client
  explain: HTTPRoute shop/shop gets it, on 2 endpoints
$ curl -H 'x-one: client' -H 'x-two: client' -H 'x-three: client' -H 'x-four: client' http://shop.test/request
  HTTP/1.1 200 OK
  other saw GET /request HTTP/1.1
    host: shop.test
    x-one: rule
    x-two: client
    x-two: rule
    x-four: client
  explain: HTTPRoute shop/shop gets it, on 2 endpoints
$ curl http://shop.test/response
  HTTP/1.1 200 OK
    x-from: endpoint
    x-from: backend
    x-from: rule
    x-set: rule
  web saw GET /response HTTP/1.1
    host: shop.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/missing
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
    x-set: rule
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: HTTPRoute shop/shop says ResolvedRefs: BackendNotFound: rule 2: Service shop/none, port 80: there is no such Service
$ curl http://refused.test/host
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has *, and no route with it is attached there
    fix: give a route on Gateway shop/public#web a rule that matches /host
$ curl http://refused.test/other
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has *, and no route with it is attached there
    fix: give a route on Gateway shop/public#web a rule that matches /other
$ curl http://partly.test/host
  HTTP/1.1 200 OK
    x-from: endpoint
    x-gone: yes
  web saw GET /host HTTP/1.1
    host: partly.test
  explain: HTTPRoute shop/partly gets it, on 1 endpoint
$ curl http://partly.test/
  HTTP/1.1 200 OK
    x-from: endpoint
    x-gone: yes
  web saw GET / HTTP/1.1
    host: partly.test
  explain: HTTPRoute shop/partly gets it, on 1 endpoint

== status
httproute shop/shop
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=False BackendNotFound: rule 2: Service shop/none, port 80: there is no such Service
httproute shop/refused
  parents:
    Gateway public
    Accepted=False UnsupportedValue: rule 0: spec.rules[0].filters[0].requestHeaderModifier.set[0].name: Host is not changed as a header; use a URLRewrite filter with hostname; rule 1: spec.rules[1].filters[0].requestHeaderModifier.remove[0]: transfer-encoding belongs to one connection, and the router writes it itself; remove it; rule 2: spec.rules[2].filters[0].responseHeaderModifier.set[0].name: connection belongs to one connection, and the router writes it itself; remove it
    ResolvedRefs=True
httproute shop/partly
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
    PartiallyInvalid=True UnsupportedValue: Dropped Rule 0: rule 0: spec.rules[0].filters[0].requestHeaderModifier.set[0].name: Host is not changed as a header; use a URLRewrite filter with hostname
