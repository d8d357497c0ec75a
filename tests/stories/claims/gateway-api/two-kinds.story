An HTTPRoute and a GRPCRoute want one host
claims: Two kinds on one host, GRPCRoute, GRPCRouteNamedRouteRule

The older one has it.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 80, protocol: HTTP}
  - {name: high, port: 8080, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: older, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  parentRefs: [{name: public, sectionName: web}]
  hostnames: [one.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: younger, namespace: shop, creationTimestamp: "2025-02-01T00:00:00Z"}
spec:
  parentRefs: [{name: public, sectionName: web}]
  hostnames: [one.test, other.test]
  rules: [{backendRefs: [{name: calls, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: both, namespace: shop, creationTimestamp: "2025-02-01T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: ["*.test"]
  rules:
  - name: greetings
    matches: [{method: {service: test.Greeter}}]
    backendRefs: [{name: calls, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: late, namespace: shop, creationTimestamp: "2025-03-01T00:00:00Z"}
spec:
  parentRefs: [{name: public, sectionName: high}]
  hostnames: [one.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
# Nothing of it can be served, so it is in nobody's way.
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: refused, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: [free.example]
  rules: [{sessionPersistence: {sessionName: s}, backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: free, namespace: shop, creationTimestamp: "2025-02-01T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: [free.example]
  rules: [{backendRefs: [{name: calls, port: 80}]}]

== backends
web: http for=shop/web
calls: grpc for=shop/calls

== requests
$ curl http://one.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/older gets it, on 1 endpoint
$ curl http://other.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has *, and no route with it is attached there
    fix: give a route on Gateway shop/public#web a rule that matches /
$ curl --http2-prior-knowledge -X POST -H 'content-type: application/grpc' -H 'te: trailers' http://one.test:8080/test.Greeter/Hello
  HTTP/2 200
  calls saw POST /test.Greeter/Hello HTTP/2
  explain: GRPCRoute shop/both gets it, on 1 endpoint
$ curl --http2-prior-knowledge -X POST -H 'content-type: application/grpc' -H 'te: trailers' http://one.test:8080/test.Other/Hello
  HTTP/2 200
    grpc-status: 12
    grpc-message: Not Found
    x-sluice-cause: no-match
  explain: UNIMPLEMENTED: Gateway shop/public#high has *.test, and no rule takes /test.Other/Hello
    fix: give a route on Gateway shop/public#high a rule that matches /test.Other/Hello
$ curl --http2-prior-knowledge -X POST -H 'content-type: application/grpc' -H 'te: trailers' http://free.example/test.Other/Hello
  HTTP/2 200
  calls saw POST /test.Other/Hello HTTP/2
  explain: GRPCRoute shop/free gets it, on 1 endpoint

== status
httproute shop/refused
  parents:
    Gateway public
    Accepted=False UnsupportedValue: rule 0: spec.rules[0].sessionPersistence: sessions are not kept with one backend; remove it
    ResolvedRefs=True
grpcroute shop/free
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
httproute shop/older
  parents:
    Gateway public#web
    Accepted=True
    ResolvedRefs=True
httproute shop/late
  parents:
    Gateway public#high
    Accepted=False HostnameConflict: a GRPCRoute of higher precedence has one of the hostnames on the same listener, which cannot be shared; choose another
    ResolvedRefs=True
grpcroute shop/younger
  parents:
    Gateway public#web
    Accepted=False HostnameConflict: an HTTPRoute of higher precedence has one of the hostnames on the same listener, which cannot be shared; choose another
    ResolvedRefs=True
grpcroute shop/both
  parents:
    Gateway public
    Accepted=True: not on web, where an HTTPRoute of higher precedence has one of the hostnames
    ResolvedRefs=True
