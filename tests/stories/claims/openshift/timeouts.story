How long endpoints and tunnels may be silent
claims: haproxy.router.openshift.io/timeout, haproxy.router.openshift.io/timeout-tunnel, Route.spec.tls.termination

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: slow
  namespace: shop
  annotations: {haproxy.router.openshift.io/timeout: 1s}
spec:
  host: slow.apps.test
  to: {kind: Service, name: slow}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: patient, namespace: shop}
spec:
  host: patient.apps.test
  to: {kind: Service, name: slow}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: chat
  namespace: shop
  annotations: {haproxy.router.openshift.io/timeout-tunnel: 400ms}
spec:
  host: chat.apps.test
  to: {kind: Service, name: chat}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: through
  namespace: shop
  annotations: {haproxy.router.openshift.io/timeout: 400ms}
spec:
  host: through.apps.test
  to: {kind: Service, name: tls}
  tls: {termination: passthrough}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: both
  namespace: shop
  annotations:
    haproxy.router.openshift.io/timeout: 400ms
    haproxy.router.openshift.io/timeout-tunnel: 1h
spec:
  host: both.apps.test
  to: {kind: Service, name: tls}
  tls: {termination: passthrough}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: wrong
  namespace: shop
  annotations: {haproxy.router.openshift.io/timeout: 0s, haproxy.router.openshift.io/timeout-tunnel: half an hour}
spec:
  host: wrong.apps.test
  to: {kind: Service, name: slow}

== backends
slow: http delay=3000ms for=shop/slow
chat: http for=shop/chat
tls: https "cert=through.apps.test both.apps.test" for=shop/tls:443

== requests
$ curl http://slow.apps.test/
  HTTP/1.1 504 Gateway Timeout
    x-sluice-cause: backend-timeout
  slow saw GET / HTTP/1.1, and the answer is not its own
  explain: Route shop/slow gets it, on 1 endpoint
$ curl http://patient.apps.test/
  HTTP/1.1 200 OK
  slow saw GET / HTTP/1.1
  explain: Route shop/patient gets it, on 1 endpoint
$ curl http://wrong.apps.test/
  HTTP/1.1 200 OK
  slow saw GET / HTTP/1.1
  explain: Route shop/wrong gets it, on 1 endpoint

# A tunnel after an upgrade ends when nothing has come for so long.
$ send 80
> GET /chat HTTP/1.1
> Host: chat.apps.test
> Connection: Upgrade
> Upgrade: websocket
> Sec-WebSocket-Version: 13
> Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
>
  HTTP/1.1 101 Switching Protocols
  chat saw GET /chat HTTP/1.1
  the connection ends
  explain: Route shop/chat gets it, on 1 endpoint

# Of passthrough the connection itself does, unless timeout-tunnel says otherwise.
$ send 443 tls through.apps.test
> GET / HTTP/1.1
> Host: through.apps.test
>
  HTTP/1.1 200 OK
  tls saw GET / HTTP/1.1
    [tls TLSv1_3, SNI through.apps.test, ALPN none]
  the connection ends
  explain: Route shop/through gets the TLS stream as it is, on 1 endpoint
$ send 443 tls both.apps.test
> GET / HTTP/1.1
> Host: both.apps.test
>
  HTTP/1.1 200 OK
  tls saw GET / HTTP/1.1
    [tls TLSv1_3, SNI both.apps.test, ALPN none]
  explain: Route shop/both gets the TLS stream as it is, on 1 endpoint

== validate
  warning: Route shop/wrong: metadata.annotations[haproxy.router.openshift.io/timeout]: Invalid value: "0s", ignored; write a whole number and us, ms, s, m, h or d, such as 30s
  warning: Route shop/wrong: metadata.annotations[haproxy.router.openshift.io/timeout-tunnel]: Invalid value: "half an hour", ignored; write a whole number and us, ms, s, m, h or d, such as 30s
