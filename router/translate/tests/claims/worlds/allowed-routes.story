A rule is a slot by its allowedRoutes where the definition of HTTPRoute has them
router: none

== manifests
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: httproutes.gateway.networking.k8s.io}
spec:
  group: gateway.networking.k8s.io
  names: {kind: HTTPRoute, plural: httproutes}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        properties: {spec: {properties: {rules: {items: {properties: {allowedRoutes: {type: object}}}}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: infra}
spec:
  gatewayClassName: sluice
  listeners: [{name: web, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: top, namespace: infra, creationTimestamp: "2024-01-02T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: [top.test]
  rules:
  - name: slot
    matches: [{path: {type: PathPrefix, value: /slot}}]
    allowedRoutes: {namespaces: {from: All}}
  - name: beside
    matches: [{path: {type: PathPrefix, value: /beside}}]
    backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: slot}, {name: web, port: 80}]
  - name: own
    matches: [{path: {type: PathPrefix, value: /own}}]
    backendRefs: [{name: web, port: 80}]
---
apiVersion: gateway.sluice.dev/v1alpha1
kind: RouteSlot
metadata: {name: slot, namespace: infra}
spec: {allowedRoutes: {namespaces: {from: Same}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: child, namespace: red, creationTimestamp: "2024-01-03T00:00:00Z"}
spec:
  parentRefs: [{kind: HTTPRoute, name: top, namespace: infra}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: of-rules, namespace: infra, creationTimestamp: "2024-01-03T00:00:00Z"}
spec:
  parentRefs:
  - {kind: HTTPRoute, name: top, sectionName: slot}
  - {kind: HTTPRoute, name: top, sectionName: beside}
  - {kind: HTTPRoute, name: top, sectionName: own}
  - {kind: HTTPRoute, name: top, sectionName: missing}
  rules: [{matches: [{path: {type: PathPrefix, value: /deep}}], backendRefs: [{name: web, port: 80}]}]

== backends
one: http for=red/web
two: http for=infra/web

== requests
$ curl http://top.test/slot/any
$ curl http://top.test/slot/deep
$ curl http://top.test/beside
$ curl http://top.test/own
