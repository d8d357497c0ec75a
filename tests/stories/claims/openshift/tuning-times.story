How long clients and endpoints may be silent
claims: IngressController.spec.tuningOptions.clientTimeout, IngressController.spec.tuningOptions.serverTimeout, IngressController.spec.tuningOptions.tunnelTimeout, IngressController.spec.tuningOptions.httpKeepAliveTimeout, IngressController.spec.tuningOptions.tlsInspectDelay, IngressController.spec.tuningOptions.serverFinTimeout

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec:
  domain: apps.test
  tuningOptions:
    clientTimeout: 300ms
    serverTimeout: 400ms
    tunnelTimeout: 400ms
    httpKeepAliveTimeout: 350ms
    tlsInspectDelay: 300ms
    serverFinTimeout: 1s
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: slow, namespace: shop}
spec: {host: slow.test, to: {kind: Service, name: slow}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: through, namespace: shop}
spec: {host: through.test, to: {kind: Service, name: tls}, tls: {termination: passthrough}}

== backends
one: http for=shop/web
slow: http delay=1200ms for=shop/slow
tls: https cert=through.test for=shop/tls:443

== requests
# A client that does not send the content it announced.
$ send 80
> POST / HTTP/1.1
> Host: shop.test
> Content-Length: 100
>
! what a client does not send is no part of a question
  HTTP/1.1 408 Request Timeout
    x-sluice-cause: client-timeout
  the connection ends
  explain: Route shop/shop gets it, on 1 endpoint
# An endpoint that does not answer.
$ curl http://slow.test/
  HTTP/1.1 504 Gateway Timeout
    x-sluice-cause: backend-timeout
  slow saw GET / HTTP/1.1, and the answer is not its own
  explain: Route shop/slow gets it, on 1 endpoint
# A connection between requests.
$ send 80
> GET / HTTP/1.1
> Host: shop.test
>
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  the connection ends
  explain: Route shop/shop gets it, on 1 endpoint
# A client that does not say hello.
$ send 443
  the connection ends without an answer
# A tunnel in which nothing moves.
$ send 443 tls through.test
> GET / HTTP/1.1
> Host: through.test
>
  HTTP/1.1 200 OK
  tls saw GET / HTTP/1.1
    [tls TLSv1_3, SNI through.test, ALPN none]
  the connection ends
  explain: Route shop/through gets the TLS stream as it is, on 1 endpoint

== status
ingresscontroller openshift-ingress-operator/default
  domain: apps.test
  Admitted=True Valid
  Available=True
  Degraded=True FieldsWithoutEffect: these fields have no effect yet: spec.tuningOptions.serverFinTimeout

== validate
  warning: IngressController openshift-ingress-operator/default: spec.tuningOptions.serverFinTimeout: has no effect: Sluice does not act on this field yet
