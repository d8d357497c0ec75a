What one client address may ask for
claims: haproxy.router.openshift.io/rate-limit-connections, haproxy.router.openshift.io/rate-limit-connections.concurrent-tcp, haproxy.router.openshift.io/rate-limit-connections.rate-tcp, haproxy.router.openshift.io/rate-limit-connections.rate-http

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: requests
  namespace: shop
  annotations:
    haproxy.router.openshift.io/rate-limit-connections: "true"
    haproxy.router.openshift.io/rate-limit-connections.rate-http: "3"
spec:
  host: requests.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: connections
  namespace: shop
  annotations:
    haproxy.router.openshift.io/rate-limit-connections: "true"
    haproxy.router.openshift.io/rate-limit-connections.rate-tcp: "2"
    haproxy.router.openshift.io/rate-limit-connections.rate-http: "3"
spec:
  host: connections.apps.test
  to: {kind: Service, name: tls}
  tls: {termination: passthrough}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: at-once
  namespace: shop
  annotations:
    haproxy.router.openshift.io/rate-limit-connections: "true"
    haproxy.router.openshift.io/rate-limit-connections.concurrent-tcp: "1"
spec:
  host: at-once.apps.test
  to: {kind: Service, name: slow}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: off
  namespace: shop
  annotations: {haproxy.router.openshift.io/rate-limit-connections.rate-http: "1"}
spec:
  host: off.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: nothing
  namespace: shop
  annotations: {haproxy.router.openshift.io/rate-limit-connections: "true"}
spec:
  host: nothing.apps.test
  to: {kind: Service, name: web}

== backends
one: http for=shop/web
tls: https cert=connections.apps.test for=shop/tls:443
slow: http hold for=shop/slow

== requests
$ x5 curl http://requests.apps.test/
  3 × HTTP/1.1 200 OK from one
  2 × HTTP/1.1 429 Too Many Requests from the router
  explain: Route shop/requests gets it, on 1 endpoint
# Another client has its own three.
$ x3 curl --interface 192.0.2.2 http://requests.apps.test/
  3 × HTTP/1.1 200 OK from one
  explain: Route shop/requests gets it, on 1 endpoint

$ x4 curl https://connections.apps.test/
  2 × HTTP/1.1 200 OK from tls
  2 × no TLS: the connection ends in the handshake from nobody
  explain: Route shop/connections gets the TLS stream as it is, on 1 endpoint

$ curl http://at-once.apps.test/ &
$ curl http://at-once.apps.test/
  HTTP/1.1 429 Too Many Requests
    x-sluice-cause: rate-limited
  explain: Route shop/at-once gets it, on 1 endpoint
$ release
$ wait
  $ curl http://at-once.apps.test/
  HTTP/1.1 200 OK
  slow saw GET / HTTP/1.1
  explain: Route shop/at-once gets it, on 1 endpoint
$ curl http://at-once.apps.test/
  HTTP/1.1 200 OK
  slow saw GET / HTTP/1.1
  explain: Route shop/at-once gets it, on 1 endpoint

$ x3 curl http://off.apps.test/
  3 × HTTP/1.1 200 OK from one
  explain: Route shop/off gets it, on 1 endpoint
$ x3 curl http://nothing.apps.test/
  3 × HTTP/1.1 200 OK from one
  explain: Route shop/nothing gets it, on 1 endpoint

== validate
  warning: Route shop/connections: metadata.annotations[haproxy.router.openshift.io/rate-limit-connections.rate-http]: has no meaning for a passthrough route, whose requests are not read, ignored; remove it, or use edge or reencrypt
  warning: Route shop/off: metadata.annotations[haproxy.router.openshift.io/rate-limit-connections.rate-http]: has no effect without haproxy.router.openshift.io/rate-limit-connections: "true"; write that too, or remove it
  warning: Route shop/nothing: metadata.annotations[haproxy.router.openshift.io/rate-limit-connections]: limits nothing by itself; write rate-limit-connections.concurrent-tcp, .rate-tcp or .rate-http too, or remove it
