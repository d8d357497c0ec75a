Endpoints that cannot be connected to
claims: IngressController.spec.tuningOptions.connectTimeout

One is silent: its address is there, and its SYNs are lost. The other one is there.

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, tuningOptions: {connectTimeout: 300ms}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: silent, namespace: shop}
spec: {host: silent.test, to: {kind: Service, name: silent}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: refused, namespace: shop}
spec: {host: refused.test, to: {kind: Service, name: refused}}

== backends
silent: silent for=shop/silent
absent: absent for=shop/refused

== requests
$ curl --max-time 4 http://silent.test/
! an endpoint's silence is no part of a question
  HTTP/1.1 504 Gateway Timeout
    x-sluice-cause: backend-connect-timeout
  explain: Route shop/silent gets it, on 1 endpoint
$ curl http://refused.test/
! whether an endpoint listens is no part of a question
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: backend-unreachable
  explain: Route shop/refused gets it, on 1 endpoint
