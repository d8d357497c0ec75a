What nothing matches, and what cannot go anywhere
claims: What nothing matches, Backends, GRPCRoute, GRPCRouteNamedRouteRule

Errors of gRPC calls are those of gRPC.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners: [{name: web, port: 80, protocol: HTTP, hostname: "*.test"}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.test]
  rules:
  - {matches: [{path: {value: /kind}}], backendRefs: [{group: example.com, kind: Bucket, name: web}]}
  - {matches: [{path: {value: /missing}}], backendRefs: [{name: missing, port: 80}]}
  - {matches: [{path: {value: /port}}], backendRefs: [{name: web, port: 81}]}
  - {matches: [{path: {value: /elsewhere}}], backendRefs: [{name: web, namespace: blog, port: 80}]}
  - {matches: [{path: {value: /nobody}}], backendRefs: [{name: nobody, port: 80}]}
  - {matches: [{path: {value: /shares}}], backendRefs: [{name: web, port: 80, weight: 2}, {name: missing, port: 80, weight: 1}, {name: nobody, port: 80, weight: 1}]}
  - {matches: [{path: {value: /no-backends}}]}
  - {matches: [{path: {value: /weightless}}], backendRefs: [{name: web, port: 80, weight: 0}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: calls, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [calls.test]
  rules:
  - name: one
    matches: [{method: {service: test.Greeter, method: Hello}}]
    backendRefs: [{name: calls, port: 80}]
  - matches: [{method: {type: RegularExpression, service: "test\\.O.*"}, headers: [{name: x-who, value: anna}]}]
    backendRefs: [{name: missing, port: 80}]
  - matches: [{method: {method: Nobody}}]
    backendRefs: [{name: nobody, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: nobody, namespace: shop}
spec: {ports: [{name: http, port: 80}]}

== backends
web: http for=shop/web
calls: grpc for=shop/calls

== requests
$ curl http://shop.example/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: no object of router default has shop.example
    fix: create a Route with host shop.example
$ curl http://other.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has *.test, and no route with it is attached there
    fix: give a route on Gateway shop/public#web a rule that matches /
$ curl http://shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has shop.test, and no rule takes /
    fix: give a route on Gateway shop/public#web a rule that matches /
$ curl http://shop.test/kind
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: HTTPRoute shop/shop says ResolvedRefs: InvalidKind: rule 0: Bucket.example.com "web" cannot be a backend; name a Service of the core group; rule 1: Service shop/missing, port 80: there is no such Service; rule 2: Service shop/web, port 81: the Service has no such port; rule 3: no ReferenceGrant in blog lets this HTTPRoute use Service blog/web; rule 5: Service shop/missing, port 80: there is no such Service
$ curl http://shop.test/missing
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: HTTPRoute shop/shop says ResolvedRefs: InvalidKind: rule 0: Bucket.example.com "web" cannot be a backend; name a Service of the core group; rule 1: Service shop/missing, port 80: there is no such Service; rule 2: Service shop/web, port 81: the Service has no such port; rule 3: no ReferenceGrant in blog lets this HTTPRoute use Service blog/web; rule 5: Service shop/missing, port 80: there is no such Service
$ curl http://shop.test/port
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: HTTPRoute shop/shop says ResolvedRefs: InvalidKind: rule 0: Bucket.example.com "web" cannot be a backend; name a Service of the core group; rule 1: Service shop/missing, port 80: there is no such Service; rule 2: Service shop/web, port 81: the Service has no such port; rule 3: no ReferenceGrant in blog lets this HTTPRoute use Service blog/web; rule 5: Service shop/missing, port 80: there is no such Service
$ curl http://shop.test/elsewhere
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: HTTPRoute shop/shop says ResolvedRefs: InvalidKind: rule 0: Bucket.example.com "web" cannot be a backend; name a Service of the core group; rule 1: Service shop/missing, port 80: there is no such Service; rule 2: Service shop/web, port 81: the Service has no such port; rule 3: no ReferenceGrant in blog lets this HTTPRoute use Service blog/web; rule 5: Service shop/missing, port 80: there is no such Service
$ curl http://shop.test/nobody
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-endpoints
  explain: 503: HTTPRoute shop/shop has it, but no service of it has a usable endpoint
    fix: Service shop/nobody has no EndpointSlice; one needs the label kubernetes.io/service-name: nobody
$ x8 curl http://shop.test/shares
  4 × HTTP/1.1 200 OK from web
  2 × HTTP/1.1 500 Internal Server Error from the router
  2 × HTTP/1.1 503 Service Unavailable from the router
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/no-backends
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: HTTPRoute shop/shop says ResolvedRefs: InvalidKind: rule 0: Bucket.example.com "web" cannot be a backend; name a Service of the core group; rule 1: Service shop/missing, port 80: there is no such Service; rule 2: Service shop/web, port 81: the Service has no such port; rule 3: no ReferenceGrant in blog lets this HTTPRoute use Service blog/web; rule 5: Service shop/missing, port 80: there is no such Service
$ curl http://shop.test/weightless
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: HTTPRoute shop/shop says ResolvedRefs: InvalidKind: rule 0: Bucket.example.com "web" cannot be a backend; name a Service of the core group; rule 1: Service shop/missing, port 80: there is no such Service; rule 2: Service shop/web, port 81: the Service has no such port; rule 3: no ReferenceGrant in blog lets this HTTPRoute use Service blog/web; rule 5: Service shop/missing, port 80: there is no such Service
$ curl --http2-prior-knowledge -X POST -H 'content-type: application/grpc' -H 'te: trailers' http://calls.test/test.Greeter/Hello
  HTTP/2 200
  calls saw POST /test.Greeter/Hello HTTP/2
  explain: GRPCRoute shop/calls gets it, on 1 endpoint
$ curl --http2-prior-knowledge -X POST -H 'content-type: application/grpc' -H 'te: trailers' http://calls.test/test.Greeter/Bye
  HTTP/2 200
    grpc-status: 12
    grpc-message: Not Found
    x-sluice-cause: no-match
  explain: UNIMPLEMENTED: Gateway shop/public#web has calls.test, and no rule takes /test.Greeter/Bye
    fix: give a route on Gateway shop/public#web a rule that matches /test.Greeter/Bye
$ curl --http2-prior-knowledge -X POST -H 'content-type: application/grpc' -H 'te: trailers' -H 'x-who: anna' http://calls.test/test.Other/Hello
  HTTP/2 200
    grpc-status: 14
    grpc-message: Internal Server Error
    x-sluice-cause: rule-answer
  explain: UNAVAILABLE: GRPCRoute shop/calls has it, and nothing that it could go to
    fix: GRPCRoute shop/calls says ResolvedRefs: BackendNotFound: rule 1: Service shop/missing, port 80: there is no such Service
$ curl --http2-prior-knowledge -X POST -H 'content-type: application/grpc' -H 'te: trailers' http://calls.test/test.Other/Hello
  HTTP/2 200
    grpc-status: 12
    grpc-message: Not Found
    x-sluice-cause: no-match
  explain: UNIMPLEMENTED: Gateway shop/public#web has calls.test, and no rule takes /test.Other/Hello
    fix: GRPCRoute shop/calls takes it with -H 'x-who: anna'
$ curl --http2-prior-knowledge -X POST -H 'content-type: application/grpc' -H 'te: trailers' http://calls.test/any.Thing/Nobody
  HTTP/2 200
    grpc-status: 14
    grpc-message: Service Unavailable
    x-sluice-cause: no-endpoints
  explain: UNAVAILABLE: GRPCRoute shop/calls has it, but no service of it has a usable endpoint
    fix: Service shop/nobody has no EndpointSlice; one needs the label kubernetes.io/service-name: nobody
$ curl --http2-prior-knowledge -X POST -H 'content-type: application/grpc' -H 'te: trailers' http://shop.example/any.Thing/Nobody
  HTTP/2 200
    grpc-status: 12
    grpc-message: Not Found
    x-sluice-cause: no-match
  explain: 404: no object of router default has shop.example
    fix: create a Route with host shop.example
$ curl http://calls.test/test.Greeter/Hello
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has calls.test, and no rule takes /test.Greeter/Hello
    fix: GRPCRoute shop/calls takes it with -X POST

== status
httproute shop/shop
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=False InvalidKind: rule 0: Bucket.example.com "web" cannot be a backend; name a Service of the core group; rule 1: Service shop/missing, port 80: there is no such Service; rule 2: Service shop/web, port 81: the Service has no such port; rule 3: no ReferenceGrant in blog lets this HTTPRoute use Service blog/web; rule 5: Service shop/missing, port 80: there is no such Service
grpcroute shop/calls
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=False BackendNotFound: rule 1: Service shop/missing, port 80: there is no such Service
