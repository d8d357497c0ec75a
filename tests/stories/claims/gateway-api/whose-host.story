The most specific listener has a host alone
claims: Whose a host is, GatewayHTTPListenerIsolation

Gateways share ports. A Gateway takes no host from a route of another one that has named the very host for longer.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: wide, namespace: infra, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: any, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: shop, port: 80, protocol: HTTP, hostname: "*.shop.test", allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: narrow, namespace: blog, creationTimestamp: "2025-03-01T00:00:00Z"}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: old, port: 80, protocol: HTTP, hostname: old.shop.test}
  - {name: new, port: 80, protocol: HTTP, hostname: new.shop.test}
  - {name: free, port: 80, protocol: HTTP, hostname: free.shop.test}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: old, namespace: shop, creationTimestamp: "2025-02-01T00:00:00Z"}
spec:
  parentRefs: [{name: wide, namespace: infra}]
  hostnames: [old.shop.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: new, namespace: shop, creationTimestamp: "2025-04-01T00:00:00Z"}
spec:
  parentRefs: [{name: wide, namespace: infra}]
  hostnames: [new.shop.test, else.shop.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: infra, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  parentRefs: [{name: wide, sectionName: any}]
  rules: [{backendRefs: [{name: fallback, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: blog, namespace: blog, creationTimestamp: "2025-03-01T00:00:00Z"}
spec:
  parentRefs: [{name: narrow}]
  rules: [{matches: [{path: {value: /blog}}], backendRefs: [{name: blog, port: 80}]}]

== backends
web: http for=shop/web
fallback: http for=infra/fallback
blog: http for=blog/blog

== requests
# There before the narrower Gateway was.
$ curl http://old.shop.test/blog
  HTTP/1.1 200 OK
  web saw GET /blog HTTP/1.1
  explain: HTTPRoute shop/old gets it, on 1 endpoint
# The narrower Gateway was there before the route.
$ curl http://new.shop.test/blog
  HTTP/1.1 200 OK
  blog saw GET /blog HTTP/1.1
  explain: HTTPRoute blog/blog gets it, on 1 endpoint
# What it does not match goes to no wider listener.
$ curl http://new.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway blog/narrow#new has new.shop.test, and no rule takes /
    fix: give a route on Gateway blog/narrow#new a rule that matches /
$ curl http://free.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway blog/narrow#free has free.shop.test, and no rule takes /
    fix: give a route on Gateway blog/narrow#free a rule that matches /
$ curl http://else.shop.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/new gets it, on 1 endpoint
# *.shop.test is a listener of its own, and without a route for this host.
$ curl http://nobody.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway infra/wide#shop has *.shop.test, and no route with it is attached there
    fix: give a route on Gateway infra/wide#shop a rule that matches /
$ curl http://shop.test/
  HTTP/1.1 200 OK
  fallback saw GET / HTTP/1.1
  explain: HTTPRoute infra/all gets it, on 1 endpoint
$ curl http://other.test/
  HTTP/1.1 200 OK
  fallback saw GET / HTTP/1.1
  explain: HTTPRoute infra/all gets it, on 1 endpoint

== status
gateway infra/wide
  Accepted=True
  Programmed=True
  ResolvedRefs=True
  listeners: any
    attachedRoutes: 3
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
  listeners: shop
    attachedRoutes: 2
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
gateway blog/narrow
  Accepted=True
  Programmed=True
  ResolvedRefs=True
  listeners: old
    attachedRoutes: 1
    Accepted=True: not served here, as an older route of another Gateway has it: old.shop.test
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
  listeners: new
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
  listeners: free
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
httproute shop/old
  parents:
    Gateway infra/wide
    Accepted=True
    ResolvedRefs=True
httproute shop/new
  parents:
    Gateway infra/wide
    Accepted=True: not served here, as a more specific listener of the port has it: new.shop.test
    ResolvedRefs=True
httproute infra/all
  parents:
    Gateway wide#any
    Accepted=True
    ResolvedRefs=True
httproute blog/blog
  parents:
    Gateway narrow
    Accepted=True: not served here, as an older route of another Gateway has it: old.shop.test
    ResolvedRefs=True
