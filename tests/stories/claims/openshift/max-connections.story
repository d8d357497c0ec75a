How many connections clients may have
claims: IngressController.spec.tuningOptions.maxConnections

The 2,001st waits until another one ends.

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, tuningOptions: {maxConnections: 2000}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: wrong, namespace: openshift-ingress-operator}
spec: {domain: wrong.test, tuningOptions: {maxConnections: 100}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ crowd 80 2000
# For a host that nobody has, so that no backend hears of it afterwards.
$ curl --max-time 1 http://nobody.test/
! who is connected is no part of a question
  no answer in time
  explain: 503: no route of router default has nobody.test
    fix: create a Route with host nobody.test
$ leave
$ curl http://shop.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/shop gets it, on 1 endpoint

== validate
  IngressController openshift-ingress-operator/wrong: spec.tuningOptions.maxConnections: Invalid value: 100; write -1, 0, or a number from 2000 to 2000000
