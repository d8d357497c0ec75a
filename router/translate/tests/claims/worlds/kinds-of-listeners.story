Kinds of routes that listeners name, as far as their protocols carry them
router: none

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: kinds, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: datagrams, port: 53, protocol: UDP, allowedRoutes: {kinds: [{kind: UDPRoute}]}}
  - {name: own, port: 54, protocol: example.com/own, allowedRoutes: {kinds: [{kind: HTTPRoute}]}}
  - {name: bare, port: 55, protocol: UDP}
  - {name: twice, port: 81, protocol: HTTP, allowedRoutes: {kinds: [{kind: HTTPRoute}, {kind: HTTPRoute}]}}
  - {name: calls, port: 82, protocol: HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}
  - {name: mixed, port: 83, protocol: HTTP, allowedRoutes: {kinds: [{kind: TLSRoute}, {kind: HTTPRoute}]}}
  - {name: foreign, port: 84, protocol: HTTP, allowedRoutes: {kinds: [{group: example.com, kind: HTTPRoute}]}}
  - {name: core, port: 85, protocol: HTTP, allowedRoutes: {kinds: [{group: "", kind: HTTPRoute}]}}
  - {name: none, port: 86, protocol: HTTP, allowedRoutes: {kinds: []}}
  - {name: passed, port: 444, protocol: TLS, tls: {mode: Passthrough}, allowedRoutes: {kinds: [{kind: HTTPRoute}, {kind: TLSRoute}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop, creationTimestamp: "2024-01-02T00:00:00Z"}
spec:
  parentRefs: [{name: kinds}]
  hostnames: [web.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: calls, namespace: shop, creationTimestamp: "2024-01-02T00:00:00Z"}
spec:
  parentRefs: [{name: kinds, sectionName: twice}, {name: kinds, sectionName: calls}, {name: kinds, sectionName: mixed}, {name: kinds, sectionName: none}]
  hostnames: [web.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: passed, namespace: shop, creationTimestamp: "2024-01-02T00:00:00Z"}
spec:
  parentRefs: [{name: kinds, sectionName: passed}, {name: kinds, sectionName: mixed}, {name: kinds, sectionName: datagrams}, {name: kinds, sectionName: missing}]
  hostnames: [web.test]
  rules: [{backendRefs: [{name: web, port: 443}]}]

== backends
one: http for=shop/web

== requests
$ curl http://web.test:81/
$ curl http://web.test:82/
$ curl http://web.test:83/
$ curl http://web.test:84/
