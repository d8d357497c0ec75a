Copies of requests
claims: Mirrors, HTTPRouteRequestMirror, HTTPRouteRequestMultipleMirrors, HTTPRouteRequestPercentageMirror
seen: host, x-set, body
mask: "bytes(In|Out)": [0-9]+

Nobody waits for them, and what they answer is nobody's.

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
  - name: all
    matches: [{path: {value: /all}}]
    filters:
    - {type: RequestMirror, requestMirror: {backendRef: {name: copy, port: 80}}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: second, port: 80}}}
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-set, value: "1"}]}}
    - {type: URLRewrite, urlRewrite: {hostname: inside.test, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}
    backendRefs: [{name: web, port: 80}]
  - name: some
    matches: [{path: {value: /some}}]
    filters: [{type: RequestMirror, requestMirror: {backendRef: {name: half, port: 80}, percent: 50}}]
    backendRefs: [{name: web, port: 80}]
  - name: third
    matches: [{path: {value: /third}}]
    filters: [{type: RequestMirror, requestMirror: {backendRef: {name: third, port: 80}, fraction: {numerator: 2, denominator: 6}}}]
    backendRefs: [{name: web, port: 80}]
  - name: broken
    matches: [{path: {value: /broken}}]
    filters: [{type: RequestMirror, requestMirror: {backendRef: {name: none, port: 80}}}]
    backendRefs: [{name: web, port: 80}]
  - name: nobody
    matches: [{path: {value: /nobody}}]
    filters: [{type: RequestMirror, requestMirror: {backendRef: {name: nobody, port: 80}}}]
    backendRefs: [{name: web, port: 80}]

== backends
web: http for=shop/web
copy: http mirror status=500 for=shop/copy
second: http mirror delay=900ms for=shop/second
half: http mirror for=shop/half
third: http mirror for=shop/third
nobody: absent for=shop/nobody

== requests
$ curl -X PUT -d content http://shop.test/all/1
  HTTP/1.1 200 OK
  web saw PUT /new/1 HTTP/1.1
    host: inside.test
    x-set: 1
    | content
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ await copy
  copy saw PUT /new/1 HTTP/1.1
    host: inside.test
    x-set: 1
    | content
$ await second
  second saw PUT /new/1 HTTP/1.1
    host: inside.test
    x-set: 1
    | content
# 50 of each 100; which ones differs from round to round.
$ x100 curl http://shop.test/some
  100 × HTTP/1.1 200 OK from web
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ x3 curl http://shop.test/third
  3 × HTTP/1.1 200 OK from web
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ await third
  third saw GET /third HTTP/1.1
    host: shop.test
# The request goes on, whatever the copy does.
$ curl http://shop.test/broken
  HTTP/1.1 200 OK
  web saw GET /broken HTTP/1.1
    host: shop.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/nobody
  HTTP/1.1 200 OK
  web saw GET /nobody HTTP/1.1
    host: shop.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ send 80
> GET /all HTTP/1.1
> Host: shop.test
> Connection: Upgrade
> Upgrade: websocket
> Sec-WebSocket-Version: 13
> Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
>
  HTTP/1.1 101 Switching Protocols
  web saw GET /new HTTP/1.1
    host: inside.test
    x-set: 1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ sluice get routes -o json
  [
    {
      "kind": "HTTPRoute",
      "namespace": "shop",
      "name": "shop",
      "parent": "Gateway shop/public",
      "router": null,
      "host": "shop.test",
      "hosts": [
        "shop.test"
      ],
      "state": "admitted",
      "reason": "Accepted",
      "message": "",
      "services": [
        {
          "name": "web",
          "weight": 1,
          "endpoints": 1
        }
      ],
      "counters": {
        "served": 107,
        "failed": 0,
        …,
        …,
        "copies": 54,
        "copiesLost": 1
      }
    }
  ]

== status
httproute shop/shop
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=False BackendNotFound: rule 3: RequestMirror: Service shop/none, port 80: there is no such Service
