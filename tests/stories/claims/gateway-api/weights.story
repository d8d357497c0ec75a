Weights are exact
claims: Weights

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 80, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.test]
  rules:
  - backendRefs:
    - {name: one, port: 80, weight: 3}
    - {name: two, port: 80, weight: 1}

== backends
one: http for=shop/one
two: http for=shop/two

== requests
$ x8 curl http://shop.test/
  6 × HTTP/1.1 200 OK from one
  2 × HTTP/1.1 200 OK from two
  explain: HTTPRoute shop/shop gets it, on 2 endpoints
$ curl http://other.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has *, and no route with it is attached there
    fix: give a route on Gateway shop/public#web a rule that matches /

== status
gateway shop/public
  Accepted=True
  Programmed=True
  ResolvedRefs=True
  listeners: web
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
httproute shop/shop
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
gatewayclass sluice
  Accepted=True
  SupportedVersion=True
