Headers that are repeated
claims: Repeated headers

The fields of one name are matched as one, in their order. Over HTTP/2, a client may send each cookie in a field of its own.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 80, protocol: HTTP, hostname: "*.shop.test"}
  - {name: calls, port: 81, protocol: HTTP, hostname: "*.call.test"}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: store, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [www.shop.test]
  rules:
  - {matches: [{headers: [{name: X-Team, value: "red,blue"}]}], backendRefs: [{name: both, port: 80}]}
  - {matches: [{headers: [{name: X-Team, value: red}]}], backendRefs: [{name: red, port: 80}]}
  - {matches: [{headers: [{name: Cookie, type: RegularExpression, value: "(.*; )?beta=1(;.*)?"}]}], backendRefs: [{name: beta, port: 80}]}
  - {backendRefs: [{name: rest, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: calls, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [one.call.test]
  rules: [{matches: [{headers: [{name: x-team, value: "red,blue"}]}], backendRefs: [{name: calls, port: 80}]}]

== backends
both: http for=shop/both
red: http for=shop/red
beta: http for=shop/beta
rest: http for=shop/rest
calls: grpc for=shop/calls

== requests
$ curl -H "X-Team: red" http://www.shop.test/
  HTTP/1.1 200 OK
  red saw GET / HTTP/1.1
  explain: HTTPRoute shop/store gets it, on 1 endpoint
$ curl -H "X-Team: red" -H "X-Team: blue" http://www.shop.test/
  HTTP/1.1 200 OK
  both saw GET / HTTP/1.1
  explain: HTTPRoute shop/store gets it, on 1 endpoint
$ curl -H "X-Team: red,blue" http://www.shop.test/
  HTTP/1.1 200 OK
  both saw GET / HTTP/1.1
  explain: HTTPRoute shop/store gets it, on 1 endpoint
$ curl -H "X-Team: blue" -H "X-Team: red" http://www.shop.test/
  HTTP/1.1 200 OK
  rest saw GET / HTTP/1.1
  explain: HTTPRoute shop/store gets it, on 1 endpoint
$ curl -H "Cookie: a=1" -H "Cookie: beta=1" http://www.shop.test/
  HTTP/1.1 200 OK
  beta saw GET / HTTP/1.1
  explain: HTTPRoute shop/store gets it, on 1 endpoint
$ curl --http2-prior-knowledge -H "Cookie: a=1" -H "Cookie: beta=1" http://www.shop.test/
  HTTP/2 200
  beta saw GET / HTTP/1.1
  explain: HTTPRoute shop/store gets it, on 1 endpoint
$ curl --http2-prior-knowledge -d x -H "Content-Type: application/grpc" -H "X-Team: red" -H "X-Team: blue" http://one.call.test:81/stories.One/Call
  HTTP/2 200
  calls saw POST /stories.One/Call HTTP/2
  explain: GRPCRoute shop/calls gets it, on 1 endpoint
$ curl --http2-prior-knowledge -X POST -H "Content-Type: application/grpc" -H "X-Team: red" http://one.call.test:81/stories.One/Call
  HTTP/2 200
    grpc-status: 12
    grpc-message: Not Found
    x-sluice-cause: no-match
  explain: UNIMPLEMENTED: Gateway shop/public#calls has one.call.test, and no rule takes /stories.One/Call
    fix: GRPCRoute shop/calls takes it with -H 'x-team: red,blue' instead of 'x-team: red'
