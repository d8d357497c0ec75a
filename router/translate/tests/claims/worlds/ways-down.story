Children that hang on a listener and below a route as well, and those that cannot hang where they want to
router: none

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: infra, creationTimestamp: "2024-01-01T00:00:00Z"}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: more, port: 81, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other, namespace: infra, creationTimestamp: "2024-01-01T00:00:00Z"}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 82, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: top, namespace: infra, creationTimestamp: "2024-01-02T00:00:00Z"}
spec:
  parentRefs: [{name: public}, {name: other}]
  hostnames: [a.test, b.test, c.test, d.test]
  rules:
  - name: slot
    matches: [{path: {type: PathPrefix, value: /slot}}]
    backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: slot}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: moved, namespace: infra, creationTimestamp: "2024-01-02T00:00:00Z"}
spec:
  parentRefs: [{name: public, sectionName: web}]
  hostnames: [moved.test]
  rules:
  - name: slot
    filters: [{type: URLRewrite, urlRewrite: {hostname: there.test}}]
    backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: slot}]
---
apiVersion: gateway.sluice.dev/v1alpha1
kind: RouteSlot
metadata: {name: slot, namespace: infra}
spec: {allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: section, namespace: red, creationTimestamp: "2024-01-03T00:00:00Z"}
spec:
  parentRefs:
  - {kind: HTTPRoute, name: top, namespace: infra}
  - {name: public, namespace: infra, sectionName: web}
  hostnames: [a.test]
  rules: [{matches: [{path: {type: PathPrefix, value: /section}}], backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: section-and-port, namespace: red, creationTimestamp: "2024-01-03T00:00:00Z"}
spec:
  parentRefs:
  - {kind: HTTPRoute, name: top, namespace: infra}
  - {name: public, namespace: infra, sectionName: web, port: 80}
  - {name: public, namespace: infra, sectionName: more, port: 81}
  hostnames: [a.test]
  rules: [{matches: [{path: {type: PathPrefix, value: /port}}], backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: whole, namespace: red, creationTimestamp: "2024-01-03T00:00:00Z"}
spec:
  parentRefs:
  - {kind: HTTPRoute, name: top, namespace: infra}
  - {name: other, namespace: infra}
  hostnames: [a.test]
  rules: [{matches: [{path: {type: PathPrefix, value: /whole}}], backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: three-hosts, namespace: infra, creationTimestamp: "2024-01-03T00:00:00Z"}
spec:
  parentRefs: [{kind: HTTPRoute, name: top, namespace: infra}]
  hostnames: [x.test, y.test, z.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: five-hosts, namespace: infra, creationTimestamp: "2024-01-03T00:00:00Z"}
spec:
  parentRefs: [{kind: HTTPRoute, name: top, namespace: infra}]
  hostnames: [v.test, w.test, x.test, y.test, z.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: of-moved, namespace: red, creationTimestamp: "2024-01-03T00:00:00Z"}
spec:
  parentRefs: [{kind: HTTPRoute, name: moved, namespace: infra}]
  rules: [{filters: [{type: URLRewrite, urlRewrite: {hostname: else.test}}], backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: level-1, namespace: infra, creationTimestamp: "2024-01-04T00:00:00Z"}
spec:
  parentRefs: [{kind: HTTPRoute, name: top, namespace: infra}]
  hostnames: [d.test]
  rules:
  - {name: own, matches: [{path: {type: Exact, value: /1}}], backendRefs: [{name: web, port: 80}]}
  - {name: slot, matches: [{path: {type: PathPrefix, value: /1}}], backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: slot}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: level-2, namespace: infra, creationTimestamp: "2024-01-04T00:00:00Z"}
spec:
  parentRefs: [{kind: HTTPRoute, name: level-1, namespace: infra}, {kind: HTTPRoute, name: level-3, namespace: infra}]
  hostnames: [d.test]
  rules:
  - {name: own, matches: [{path: {type: Exact, value: /2}}], backendRefs: [{name: web, port: 80}]}
  - {name: slot, matches: [{path: {type: PathPrefix, value: /2}}], backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: slot}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: level-3, namespace: infra, creationTimestamp: "2024-01-04T00:00:00Z"}
spec:
  parentRefs: [{kind: HTTPRoute, name: level-2, namespace: infra}]
  hostnames: [d.test]
  rules:
  - {name: own, matches: [{path: {type: Exact, value: /3}}], backendRefs: [{name: web, port: 80}]}
  - {name: slot, matches: [{path: {type: PathPrefix, value: /3}}], backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: slot}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: level-4, namespace: infra, creationTimestamp: "2024-01-04T00:00:00Z"}
spec:
  parentRefs: [{kind: HTTPRoute, name: level-3, namespace: infra}]
  hostnames: [d.test]
  rules:
  - {name: own, matches: [{path: {type: Exact, value: /4}}], backendRefs: [{name: web, port: 80}]}
  - {name: slot, matches: [{path: {type: PathPrefix, value: /4}}], backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: slot}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: level-5, namespace: infra, creationTimestamp: "2024-01-04T00:00:00Z"}
spec:
  parentRefs: [{kind: HTTPRoute, name: level-4, namespace: infra}]
  hostnames: [d.test]
  rules:
  - {name: own, matches: [{path: {type: Exact, value: /5}}], backendRefs: [{name: web, port: 80}]}
  - {name: slot, matches: [{path: {type: PathPrefix, value: /5}}], backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: slot}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: sockets, namespace: red, creationTimestamp: "2024-01-05T00:00:00Z"}
spec:
  virtualhost: {fqdn: sockets.test}
  routes:
  - {match: /one, enableWebsockets: true, services: [{name: web, port: 80}]}
  - {match: /none, services: [{name: web, port: 80}, {name: web, port: 80, weight: 3}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: two-sockets, namespace: red, creationTimestamp: "2024-01-05T00:00:00Z"}
spec:
  virtualhost: {fqdn: two-sockets.test}
  routes:
  - {match: /, enableWebsockets: true, services: [{name: web, port: 80}, {name: web, port: 80, weight: 3}]}

== backends
one: http for=red/web
two: http for=infra/web

== requests
$ curl http://a.test/slot/section
$ curl http://a.test/section
$ curl http://a.test:81/slot/port
$ curl http://a.test:82/whole
$ curl http://d.test/slot/1/2/3/4
$ curl http://d.test/slot/1/2/3/3
$ curl http://moved.test/
$ curl http://sockets.test/one
$ curl http://two-sockets.test/
