How long a request and a try may take
claims: Timeouts, HTTPRouteRequestTimeout, HTTPRouteBackendTimeout

Neither ends a tunnel after an upgrade.

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
  - matches: [{path: {value: /request}}]
    timeouts: {request: 1s}
    backendRefs: [{name: slow, port: 80}]
  - matches: [{path: {value: /try}}]
    timeouts: {request: 8s, backendRequest: 1s}
    backendRefs: [{name: slow, port: 80}]
  - matches: [{path: {value: /never}}]
    timeouts: {request: 0s}
    backendRefs: [{name: slow, port: 80}]
  - matches: [{path: {value: /chat}}]
    timeouts: {request: 1s, backendRequest: 900ms}
    backendRefs: [{name: chat, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: wrong, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [wrong.test]
  rules:
  - timeouts: {request: 1s, backendRequest: 2s}
    backendRefs: [{name: slow, port: 80}]

== backends
slow: http delay=3000ms for=shop/slow
chat: http for=shop/chat

== requests
$ curl http://shop.test/request
  HTTP/1.1 504 Gateway Timeout
    x-sluice-cause: rule-timeout
  slow saw GET /request HTTP/1.1, and the answer is not its own
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/try
  HTTP/1.1 504 Gateway Timeout
    x-sluice-cause: rule-timeout
  slow saw GET /try HTTP/1.1, and the answer is not its own
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/never
  HTTP/1.1 200 OK
  slow saw GET /never HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ open line 80
$ write line
> GET /chat HTTP/1.1
> Host: shop.test
> Connection: Upgrade
> Upgrade: websocket
> Sec-WebSocket-Version: 13
> Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
>
  HTTP/1.1 101 Switching Protocols
  chat saw GET /chat HTTP/1.1
# Meanwhile both times are over.
$ curl http://shop.test/request
  HTTP/1.1 504 Gateway Timeout
    x-sluice-cause: rule-timeout
  slow saw GET /request HTTP/1.1, and the answer is not its own
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ write line
> still here
  still here
$ curl http://wrong.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has *, and no route with it is attached there
    fix: give a route on Gateway shop/public#web a rule that matches /

== status
httproute shop/shop
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
httproute shop/wrong
  parents:
    Gateway public
    Accepted=False UnsupportedValue: story.yaml:35: spec.rules[0].timeouts.backendRequest: Invalid value: is longer than timeouts.request; write at most that
