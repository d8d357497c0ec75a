Requests are sent again
claims: Retries, HTTPRouteRetry, HTTPRouteRetryBackendTimeout, HTTPRouteRetryConnectionError

To another endpoint of the same backend; and only requests that may be repeated.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners: [{name: web, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.test]
  rules:
  - matches: [{path: {value: /codes}}]
    retry: {codes: [503], attempts: 1, backoff: 1ms}
    backendRefs: [{name: mixed, port: 80}]
  - matches: [{path: {value: /other-codes}}]
    retry: {codes: [502], attempts: 1}
    backendRefs: [{name: bad, port: 80}]
  - matches: [{path: {value: /same}}]
    retry: {codes: [500, 503], attempts: 2, backoff: 1ms}
    backendRefs: [{name: bad, port: 80}]
  - matches: [{path: {value: /broken}}]
    retry: {attempts: 1, backoff: 1ms}
    backendRefs: [{name: broken, port: 80}]
  - matches: [{path: {value: /slow}}]
    retry: {attempts: 1, backoff: 1ms}
    timeouts: {request: 8s, backendRequest: 1s}
    backendRefs: [{name: slow, port: 80}]
  - matches: [{path: {value: /refused}}]
    retry: {attempts: 1, backoff: 1ms}
    backendRefs: [{name: absent, port: 80}]
  - matches: [{path: {value: /none}}]
    backendRefs: [{name: bad, port: 80}]

== backends
fine: http for=shop/mixed
failing: http status=503 for=shop/mixed
bad: http status=503,503,200,503 for=shop/bad
closes: http close for=shop/broken
absent: absent for=shop/absent
slow: http delay=3000ms for=shop/slow

== requests
# Whoever is first, the client does not see the 503.
$ ~x4 curl http://shop.test/codes
  HTTP/1.1 200 OK from fine
  explain: HTTPRoute shop/shop gets it, on 2 endpoints
# One endpoint alone: it is asked again.
$ curl http://shop.test/same
  HTTP/1.1 200 OK
  bad saw GET /same HTTP/1.1, and the answer is not its own
  bad saw GET /same HTTP/1.1, and the answer is not its own
  bad saw GET /same HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/other-codes
  HTTP/1.1 503 Service Unavailable
  bad saw GET /other-codes HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/none
  HTTP/1.1 503 Service Unavailable
  bad saw GET /none HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
# A request with content, and a method that may not be repeated.
$ curl -X PUT -d content http://shop.test/same
  HTTP/1.1 503 Service Unavailable
  bad saw PUT /same HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl -X POST http://shop.test/same
  HTTP/1.1 503 Service Unavailable
  bad saw POST /same HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl -X DELETE http://shop.test/same
  HTTP/1.1 503 Service Unavailable
  bad saw DELETE /same HTTP/1.1, and the answer is not its own
  bad saw DELETE /same HTTP/1.1, and the answer is not its own
  bad saw DELETE /same HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/broken
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: backend-closed
  closes saw GET /broken HTTP/1.1, and the answer is not its own
  closes saw GET /broken HTTP/1.1, and the answer is not its own
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/refused
! who is not there is known when it is asked
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: backend-unreachable
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/slow
  HTTP/1.1 504 Gateway Timeout
    x-sluice-cause: rule-timeout
  slow saw GET /slow HTTP/1.1, and the answer is not its own
  slow saw GET /slow HTTP/1.1, and the answer is not its own
  explain: HTTPRoute shop/shop gets it, on 1 endpoint

== status
httproute shop/shop
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
