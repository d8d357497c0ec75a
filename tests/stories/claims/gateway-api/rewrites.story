Hosts and paths are rewritten
claims: HTTPRouteHostRewrite, HTTPRoutePathRewrite
seen: host

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
  - matches: [{path: {value: /host}}]
    filters: [{type: URLRewrite, urlRewrite: {hostname: inside.test}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /prefix}}]
    filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /gone/}}]
    filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: ""}}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /slash}}]
    filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new/}}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /full}}]
    filters: [{type: URLRewrite, urlRewrite: {hostname: inside.test, path: {type: ReplaceFullPath, replaceFullPath: /all}}}]
    backendRefs: [{name: web, port: 80}]

== backends
web: http for=shop/web

== requests
$ curl http://shop.test/host/a?b
  HTTP/1.1 200 OK
  web saw GET /host/a?b HTTP/1.1
    host: inside.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/prefix/a?b
  HTTP/1.1 200 OK
  web saw GET /new/a?b HTTP/1.1
    host: shop.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/prefix
  HTTP/1.1 200 OK
  web saw GET /new HTTP/1.1
    host: shop.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/prefix/
  HTTP/1.1 200 OK
  web saw GET /new/ HTTP/1.1
    host: shop.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/prefixed
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has shop.test, and no rule takes /prefixed
    fix: give a route on Gateway shop/public#web a rule that matches /prefixed
$ curl http://shop.test/gone/a
  HTTP/1.1 200 OK
  web saw GET /a HTTP/1.1
    host: shop.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/gone
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
    host: shop.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/slash/a
  HTTP/1.1 200 OK
  web saw GET /new/a HTTP/1.1
    host: shop.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/slash
  HTTP/1.1 200 OK
  web saw GET /new HTTP/1.1
    host: shop.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/full/a?b=c
  HTTP/1.1 200 OK
  web saw GET /all?b=c HTTP/1.1
    host: inside.test
  explain: HTTPRoute shop/shop gets it, on 1 endpoint

== status
httproute shop/shop
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
