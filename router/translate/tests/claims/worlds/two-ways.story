A route that is included on two ways has rules of its own on each
router: none

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: infra}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: store, namespace: infra, creationTimestamp: "2024-01-01T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: [store.test]
  rules:
  - name: one
    matches: [{path: {type: PathPrefix, value: /one}}]
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Way, value: one}]}}]
    backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: teams}]
  - name: other
    matches: [{path: {type: PathPrefix, value: /other}}]
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Way, value: other}]}}]
    backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: teams}]
---
apiVersion: gateway.sluice.dev/v1alpha1
kind: RouteSlot
metadata: {name: teams, namespace: infra}
spec: {allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, namespace: red, creationTimestamp: "2024-01-02T00:00:00Z"}
spec:
  parentRefs:
  - {kind: HTTPRoute, name: store, namespace: infra, sectionName: one}
  - {kind: HTTPRoute, name: store, namespace: infra, sectionName: other}
  rules:
  - matches: [{path: {type: PathPrefix, value: /first}}]
    backendRefs: [{name: cart, port: 80}]
  - matches: [{path: {type: PathPrefix, value: /second}}]
    backendRefs: [{name: cart, port: 80}]
  - matches: [{path: {type: PathPrefix, value: /third}}]
    backendRefs: [{name: cart, port: 80}]

== backends
one: http for=red/cart

== requests
$ curl http://store.test/one/second
$ curl http://store.test/other/second
$ curl http://store.test/other/third
