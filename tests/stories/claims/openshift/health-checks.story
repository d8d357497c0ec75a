Endpoints are connected to, to see whether they are there
claims: router.openshift.io/haproxy.health.check.interval, IngressController.spec.tuningOptions.healthCheckInterval

Where a Route has more than one endpoint. What is checked is told by the backends: connections without a request.

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec:
  domain: apps.test
  tuningOptions: {healthCheckInterval: 200ms}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: often, namespace: shop, annotations: {router.openshift.io/haproxy.health.check.interval: 50ms}}
spec:
  host: often.apps.test
  to: {kind: Service, name: often}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: usual, namespace: shop}
spec:
  host: usual.apps.test
  to: {kind: Service, name: usual}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: wrong, namespace: shop, annotations: {router.openshift.io/haproxy.health.check.interval: soon}}
spec:
  host: wrong.apps.test
  to: {kind: Service, name: usual}

== backends
one: http for=shop/often
two: http for=shop/often
three: http for=shop/usual
four: http for=shop/usual

== requests
$ checks one 20
  20 connections within 3 s
$ checks two 20
  20 connections within 3 s
$ checks three 6
  6 connections within 3 s
$ checks four 6
  6 connections within 3 s
$ ~x20 curl http://often.apps.test/
  HTTP/1.1 200 OK from one
  HTTP/1.1 200 OK from two
  explain: Route shop/often gets it, on 2 endpoints

== validate
  warning: Route shop/wrong: metadata.annotations[router.openshift.io/haproxy.health.check.interval]: Invalid value: "soon", ignored; write a whole number and us, ms, s, m, h or d, such as 30s
