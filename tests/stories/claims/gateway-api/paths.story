Paths are compared as they were sent, unless the Gateway says otherwise
claims: Paths

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
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.test]
  rules:
  - matches: [{path: {value: /admin}}]
    backendRefs: [{name: admin, port: 80}]
  - backendRefs: [{name: web, port: 80}]

== manifests later normal
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop, annotations: {router.sluice.dev/normalize-path: "true"}}
spec:
  gatewayClassName: sluice
  listeners: [{name: web, port: 80, protocol: HTTP}]

== backends
web: http for=shop/web
admin: http for=shop/admin

== requests
$ curl --path-as-is http://shop.test/admin/1
  HTTP/1.1 200 OK
  admin saw GET /admin/1 HTTP/1.1
  explain: HTTPRoute shop/web gets it, on 1 endpoint
$ curl --path-as-is http://shop.test/x/../admin//1
  HTTP/1.1 200 OK
  web saw GET /x/../admin//1 HTTP/1.1
  explain: HTTPRoute shop/web gets it, on 1 endpoint
$ curl --path-as-is http://shop.test//admin
  HTTP/1.1 200 OK
  web saw GET //admin HTTP/1.1
  explain: HTTPRoute shop/web gets it, on 1 endpoint
$ apply normal
$ curl --path-as-is http://shop.test/x/../admin//1
  HTTP/1.1 200 OK
  admin saw GET /admin/1 HTTP/1.1
  explain: HTTPRoute shop/web gets it, on 1 endpoint
$ curl --path-as-is http://shop.test//admin
  HTTP/1.1 200 OK
  admin saw GET /admin HTTP/1.1
  explain: HTTPRoute shop/web gets it, on 1 endpoint
$ curl --path-as-is http://shop.test/admin/%2e%2E/a?b=//
  HTTP/1.1 200 OK
  web saw GET /a?b=// HTTP/1.1
  explain: HTTPRoute shop/web gets it, on 1 endpoint
