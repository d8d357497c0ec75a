What a specific hostname does not match goes on to wider ones
claims: Wider hostnames

They are of the same listener; another listener's are never asked.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 80, protocol: HTTP, hostname: "*.shop.test"}
  - {name: any, port: 80, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: exact, namespace: shop}
spec:
  parentRefs: [{name: public, sectionName: web}]
  hostnames: [a.b.shop.test]
  rules: [{matches: [{path: {value: /exact}}], backendRefs: [{name: exact, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: narrow, namespace: shop}
spec:
  parentRefs: [{name: public, sectionName: web}]
  hostnames: ["*.b.shop.test"]
  rules: [{matches: [{path: {value: /narrow}}], backendRefs: [{name: narrow, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: wide, namespace: shop}
spec:
  parentRefs: [{name: public, sectionName: web}]
  rules: [{matches: [{path: {value: /wide}}, {path: {type: Exact, value: /exact/or/not}}], backendRefs: [{name: wide, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: any, namespace: shop}
spec:
  parentRefs: [{name: public, sectionName: any}]
  rules: [{backendRefs: [{name: any, port: 80}]}]

== backends
exact: http for=shop/exact
narrow: http for=shop/narrow
wide: http for=shop/wide
any: http for=shop/any

== requests
$ curl http://a.b.shop.test/exact
  HTTP/1.1 200 OK
  exact saw GET /exact HTTP/1.1
  explain: HTTPRoute shop/exact gets it, on 1 endpoint
$ curl http://a.b.shop.test/narrow
  HTTP/1.1 200 OK
  narrow saw GET /narrow HTTP/1.1
  explain: HTTPRoute shop/narrow gets it, on 1 endpoint
$ curl http://a.b.shop.test/wide
  HTTP/1.1 200 OK
  wide saw GET /wide HTTP/1.1
  explain: HTTPRoute shop/wide gets it, on 1 endpoint
# The host comes before the kind of path.
$ curl http://a.b.shop.test/exact/or/not
  HTTP/1.1 200 OK
  exact saw GET /exact/or/not HTTP/1.1
  explain: HTTPRoute shop/exact gets it, on 1 endpoint
$ curl http://c.b.shop.test/exact/or/not
  HTTP/1.1 200 OK
  wide saw GET /exact/or/not HTTP/1.1
  explain: HTTPRoute shop/wide gets it, on 1 endpoint
$ curl http://c.b.shop.test/wide
  HTTP/1.1 200 OK
  wide saw GET /wide HTTP/1.1
  explain: HTTPRoute shop/wide gets it, on 1 endpoint
$ curl http://c.b.shop.test/exact
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has *.b.shop.test, and no rule takes /exact
    fix: give a route on Gateway shop/public#web a rule that matches /exact
$ curl http://A.B.Shop.Test/exact
  HTTP/1.1 200 OK
  exact saw GET /exact HTTP/1.1
  explain: HTTPRoute shop/exact gets it, on 1 endpoint
$ curl http://b.shop.test/narrow
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has *.shop.test, and no rule takes /narrow
    fix: give a route on Gateway shop/public#web a rule that matches /narrow
$ curl http://shop.test/wide
  HTTP/1.1 200 OK
  any saw GET /wide HTTP/1.1
  explain: HTTPRoute shop/any gets it, on 1 endpoint

== status
httproute shop/exact
  parents:
    Gateway public#web
    Accepted=True
    ResolvedRefs=True
httproute shop/wide
  parents:
    Gateway public#web
    Accepted=True
    ResolvedRefs=True
