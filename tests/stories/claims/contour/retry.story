Requests that fail are sent again
claims: IngressRoute retryPolicy, HTTPProxy retryPolicy, HTTPProxy rejected retryOn

Only what may be repeated is: an idempotent method without content.

== manifests
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: again, namespace: shop}
spec:
  virtualhost: {fqdn: route.test}
  routes:
  - match: /
    services: [{name: flaky, port: 80}]
    retryPolicy: {count: 2}
  - match: /silent
    services: [{name: silent, port: 80}]
    retryPolicy: {count: 1, perTryTimeout: 1s}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: again, namespace: shop}
spec:
  virtualhost: {fqdn: proxy.test}
  routes:
  - services: [{name: broken, port: 80}]
    retryPolicy: {count: 2, retryOn: [5xx]}
  - conditions: [{prefix: /codes}]
    services: [{name: codes, port: 80}]
    retryPolicy: {retriableStatusCodes: [418], retryOn: [retriable-status-codes]}
  - conditions: [{prefix: /once}]
    services: [{name: broken, port: 80}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: grpc, namespace: shop}
spec:
  virtualhost: {fqdn: grpc.test}
  routes:
  - services: [{name: broken, port: 80}]
    retryPolicy: {retryOn: [cancelled]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: headers, namespace: shop}
spec:
  virtualhost: {fqdn: headers.test}
  routes:
  - services: [{name: broken, port: 80}]
    retryPolicy: {retryOn: [retriable-headers]}

== backends
flaky: http for=shop/flaky status=503,503,200
silent: http for=shop/silent hold
broken: http for=shop/broken status=503
codes: http for=shop/codes status=418,200

== requests
$ curl http://route.test/
  HTTP/1.1 200 OK
  flaky saw GET / HTTP/1.1, and the answer is not its own
  flaky saw GET / HTTP/1.1, and the answer is not its own
  flaky saw GET / HTTP/1.1
  explain: IngressRoute shop/again gets it, on 1 endpoint
$ curl http://route.test/silent
  HTTP/1.1 504 Gateway Timeout
    x-sluice-cause: rule-timeout
  silent saw GET /silent HTTP/1.1, and the answer is not its own
  silent saw GET /silent HTTP/1.1, and the answer is not its own
  explain: IngressRoute shop/again gets it, on 1 endpoint
$ curl -X POST -d x http://proxy.test/
  HTTP/1.1 503 Service Unavailable
  broken saw POST / HTTP/1.1
  explain: HTTPProxy shop/again gets it, on 1 endpoint
$ curl http://proxy.test/
  HTTP/1.1 503 Service Unavailable
  broken saw GET / HTTP/1.1, and the answer is not its own
  broken saw GET / HTTP/1.1, and the answer is not its own
  broken saw GET / HTTP/1.1
  explain: HTTPProxy shop/again gets it, on 1 endpoint
$ curl http://proxy.test/codes
  HTTP/1.1 200 OK
  codes saw GET /codes HTTP/1.1, and the answer is not its own
  codes saw GET /codes HTTP/1.1
  explain: HTTPProxy shop/again gets it, on 1 endpoint
$ curl http://proxy.test/once
  HTTP/1.1 503 Service Unavailable
  broken saw GET /once HTTP/1.1
  explain: HTTPProxy shop/again gets it, on 1 endpoint
$ curl http://grpc.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/grpc claims it and is not served: default: Invalid: spec.routes[0].retryPolicy.retryOn[0]: cancelled is not supported; write 5xx, gateway-error, reset, connect-failure, retriable-4xx, refused-stream or retriable-status-codes
    fix: correct HTTPProxy shop/grpc: as its status says; `sluice validate` shows the place
$ curl http://headers.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/headers claims it and is not served: default: Invalid: spec.routes[0].retryPolicy.retryOn[0]: retriable-headers is not supported; write 5xx, gateway-error, reset, connect-failure, retriable-4xx, refused-stream or retriable-status-codes
    fix: correct HTTPProxy shop/headers: as its status says; `sluice validate` shows the place

== status
ingressroute shop/again
  currentStatus: valid
  description: valid IngressRoute
httpproxy shop/again
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/grpc
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].retryPolicy.retryOn[0]: cancelled is not supported; write 5xx, gateway-error, reset, connect-failure, retriable-4xx, refused-stream or retriable-status-codes
httpproxy shop/headers
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].retryPolicy.retryOn[0]: retriable-headers is not supported; write 5xx, gateway-error, reset, connect-failure, retriable-4xx, refused-stream or retriable-status-codes

== validate
  warning: HTTPProxy shop/grpc: default does not serve it: Invalid: spec.routes[0].retryPolicy.retryOn[0]: cancelled is not supported; write 5xx, gateway-error, reset, connect-failure, retriable-4xx, refused-stream or retriable-status-codes
  warning: HTTPProxy shop/headers: default does not serve it: Invalid: spec.routes[0].retryPolicy.retryOn[0]: retriable-headers is not supported; write 5xx, gateway-error, reset, connect-failure, retriable-4xx, refused-stream or retriable-status-codes
