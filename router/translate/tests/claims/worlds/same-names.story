Objects of different kinds with one name are different objects

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shop, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: shop, port: 80, protocol: HTTP, hostname: "*.shop.test"}
  - name: tls
    port: 443
    protocol: HTTPS
    hostname: "*.shop.test"
    tls: {certificateRefs: [{name: shop}]}
---
apiVersion: v1
kind: Secret
metadata: {name: shop, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert *.shop.test}}, tls.key: {{key *.shop.test}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: shop, namespace: shop}
data: {ca.crt: {{ca inside}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop, creationTimestamp: "2024-01-02T00:00:00Z"}
spec:
  parentRefs: [{name: shop}]
  hostnames: [www.shop.test]
  rules:
  - name: shop
    matches: [{path: {type: PathPrefix, value: /slot}}]
    backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: shop}]
  - name: own
    backendRefs: [{name: shop, port: 80}]
---
apiVersion: gateway.sluice.dev/v1alpha1
kind: RouteSlot
metadata: {name: shop, namespace: shop}
spec: {allowedRoutes: {namespaces: {from: Same}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: child, namespace: shop, creationTimestamp: "2024-01-03T00:00:00Z"}
spec:
  parentRefs: [{kind: HTTPRoute, name: shop}]
  rules:
  - matches: [{path: {type: PathPrefix, value: /child}}]
    backendRefs: [{name: shop, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: of-services, namespace: shop, creationTimestamp: "2024-01-04T00:00:00Z"}
spec:
  parentRefs: [{group: "", kind: Service, name: shop}, {group: example.com, kind: Gateway, name: shop}]
  hostnames: [mesh.shop.test]
  rules: [{backendRefs: [{name: shop, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: shop, namespace: shop, creationTimestamp: "2024-01-05T00:00:00Z"}
spec:
  parentRefs: [{name: shop, sectionName: shop}]
  hostnames: [grpc.shop.test]
  rules:
  - backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: missing}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: shop, namespace: shop}
spec:
  targetRefs:
  - {group: example.com, kind: Service, name: shop}
  - {group: "", kind: ConfigMap, name: shop}
  validation: {hostname: shop.test, caCertificateRefs: [{group: "", kind: ConfigMap, name: shop}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: elsewhere, namespace: shop, creationTimestamp: "2024-01-06T00:00:00Z"}
spec:
  parentRefs: [{name: shop}]
  hostnames: [elsewhere.shop.test]
  rules:
  - matches: [{path: {type: PathPrefix, value: /group}}]
    backendRefs: [{group: example.com, kind: Service, name: shop, port: 80}]
  - matches: [{path: {type: PathPrefix, value: /kind}}]
    backendRefs: [{group: "", kind: Secret, name: shop, port: 80}]
  - matches: [{path: {type: PathPrefix, value: /namespace}}]
    backendRefs: [{name: shop, namespace: other, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: shop, namespace: other}
spec:
  from: [{group: gateway.networking.k8s.io, kind: GRPCRoute, namespace: shop}]
  to: [{group: "", kind: Service}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: shop, namespace: shop, creationTimestamp: "2024-01-07T00:00:00Z"}
spec:
  virtualhost: {fqdn: proxy.test}
  includes: [{name: child, conditions: [{prefix: /child}]}]
  routes: [{services: [{name: shop, port: 80}]}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: child, namespace: shop, creationTimestamp: "2024-01-07T00:00:00Z"}
spec: {routes: [{match: /child, services: [{name: shop, port: 80}]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: shop, namespace: shop, creationTimestamp: "2024-01-07T00:00:00Z"}
spec:
  virtualhost: {fqdn: ingress.test}
  routes: [{match: /, services: [{name: shop, port: 80}]}, {match: /child, delegate: {name: child}}]

== backends
one: http for=shop/shop
two: http for=other/shop

== requests
$ curl http://www.shop.test/slot/child
$ curl http://www.shop.test/
$ curl http://mesh.shop.test/
$ curl http://elsewhere.shop.test/group
$ curl http://elsewhere.shop.test/kind
$ curl http://elsewhere.shop.test/namespace
$ curl http://proxy.test/child
$ curl http://ingress.test/child
