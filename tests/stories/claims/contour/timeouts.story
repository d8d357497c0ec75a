A route says how long a request may take, how long it may be silent, and how long connections are kept
claims: HTTPProxy timeoutPolicy.response, HTTPProxy timeoutPolicy.idle, HTTPProxy timeoutPolicy.idleConnection, HTTPProxy timeoutPolicy, IngressRoute timeoutPolicy

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: times, namespace: shop}
spec:
  virtualhost: {fqdn: times.test}
  routes:
  - conditions: [{prefix: /response}]
    services: [{name: silent, port: 80}]
    timeoutPolicy: {response: 1s}
  - conditions: [{prefix: /idle}]
    services: [{name: silent, port: 80}]
    timeoutPolicy: {response: infinity, idle: 600ms}
  - conditions: [{prefix: /patient}]
    services: [{name: slow, port: 80}]
    timeoutPolicy: {response: 1m, idle: 1m}
  - conditions: [{prefix: /kept}]
    services: [{name: web, port: 80}]
    timeoutPolicy: {idleConnection: 1s}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: request, namespace: shop}
spec:
  virtualhost: {fqdn: request.test}
  routes:
  - match: /
    services: [{name: silent, port: 80}]
    timeoutPolicy: {request: 1s}

== backends
silent: http for=shop/silent hold
slow: http for=shop/slow delay=2000ms
web: http for=shop/web

== requests
$ curl http://times.test/response
  HTTP/1.1 504 Gateway Timeout
    x-sluice-cause: rule-timeout
  silent saw GET /response HTTP/1.1, and the answer is not its own
  explain: HTTPProxy shop/times gets it, on 1 endpoint
$ curl http://times.test/idle
  HTTP/1.1 504 Gateway Timeout
    x-sluice-cause: backend-timeout
  silent saw GET /idle HTTP/1.1, and the answer is not its own
  explain: HTTPProxy shop/times gets it, on 1 endpoint
$ send 80
> POST /idle HTTP/1.1
> Host: times.test
> Content-Length: 10
>
> abc
! the client does not go on with its content
  HTTP/1.1 408 Request Timeout
    x-sluice-cause: client-timeout
  the connection ends
  explain: HTTPProxy shop/times gets it, on 1 endpoint
$ curl http://times.test/patient
  HTTP/1.1 200 OK
  slow saw GET /patient HTTP/1.1
  explain: HTTPProxy shop/times gets it, on 1 endpoint
$ curl http://times.test/kept
  HTTP/1.1 200 OK
  web saw GET /kept HTTP/1.1
  explain: HTTPProxy shop/times gets it, on 1 endpoint
$ curl http://request.test/
  HTTP/1.1 504 Gateway Timeout
    x-sluice-cause: rule-timeout
  silent saw GET / HTTP/1.1, and the answer is not its own
  explain: IngressRoute shop/request gets it, on 1 endpoint

== status
httpproxy shop/times
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
ingressroute shop/request
  currentStatus: valid
  description: valid IngressRoute
