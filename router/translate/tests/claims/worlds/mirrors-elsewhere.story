The namespace of a mirror's Service is told where it is not the route's
router: none

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
  - matches: [{path: {type: PathPrefix, value: /own}}]
    filters: [{type: RequestMirror, requestMirror: {backendRef: {name: copy, namespace: shop, port: 80}}}]
    backendRefs: [{name: web, namespace: shop, port: 80}]
  - matches: [{path: {type: PathPrefix, value: /other}}]
    filters: [{type: RequestMirror, requestMirror: {backendRef: {name: copy, namespace: blog, port: 80}}}]
    backendRefs: [{name: web, namespace: blog, port: 80}]
  - matches: [{path: {type: PathPrefix, value: /missing}}]
    filters: [{type: RequestMirror, requestMirror: {backendRef: {name: missing, port: 80}}}]
    backendRefs: [{name: web, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: shop, namespace: blog}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}]
  to: [{group: "", kind: Service}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: lost, namespace: shop}
spec:
  parentRefs: [{name: nowhere}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: hung, namespace: shop}
spec:
  parentRefs: [{name: refused}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: refused, namespace: shop}
spec: {gatewayClassName: sluice, listeners: []}

== backends
one: http for=shop/web
two: http for=blog/web
three: http for=shop/copy
four: http for=blog/copy

== requests
$ curl http://shop.test/own
$ curl http://shop.test/other
$ curl http://shop.test/missing
