Domains that the operator denies
claims: Denied domains
flags: --denied-domains internal.test --allowed-domains test,example.com

What is denied is answered 404, whoever has the wider host.

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
metadata: {name: outside, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [a.internal.test, "*.internal.test", shop.example.org]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: wider, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: ["*.test", shop.example.org]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: any, namespace: shop}
spec:
  parentRefs: [{name: public}]
  rules: [{backendRefs: [{name: any, port: 80}]}]

== backends
web: http for=shop/web
any: http for=shop/any

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/wider gets it, on 1 endpoint
$ curl http://a.internal.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: *.internal.test is in the list of denied domains
    fix: ask for another host, or change --denied-domains of the agent
$ curl http://internal.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: internal.test is in the list of denied domains
    fix: ask for another host, or change --denied-domains of the agent
$ curl http://x.y.internal.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: *.internal.test is in the list of denied domains
    fix: ask for another host, or change --denied-domains of the agent
$ curl http://shop.example.com/
  HTTP/1.1 200 OK
  any saw GET / HTTP/1.1
  explain: HTTPRoute shop/any gets it, on 1 endpoint
$ curl http://shop.example.org/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPRoute shop/outside claims it and is not served: Gateway shop/public: HostNotPermitted: host *.internal.test is in the list of denied domains; host a.internal.test is in the list of denied domains; host shop.example.org is not in the list of allowed domains
    fix: give the route another host, or change --denied-domains and --allowed-domains of the agent
$ curl http://192.0.2.99/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: 192.0.2.99 is an address, and no object has every host
    fix: ask for the host name of a route

== status
httproute shop/outside
  parents:
    Gateway public
    Accepted=False HostNotPermitted: host *.internal.test is in the list of denied domains; host a.internal.test is in the list of denied domains; host shop.example.org is not in the list of allowed domains
    ResolvedRefs=True
httproute shop/wider
  parents:
    Gateway public
    Accepted=True: host shop.example.org is not in the list of allowed domains
    ResolvedRefs=True
httproute shop/any
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
gateway shop/public
  Accepted=True
  Programmed=True
  ResolvedRefs=True
  listeners: web
    attachedRoutes: 2
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
