Requests take turns among endpoints
claims: haproxy.router.openshift.io/balance

Three of six go to each of two endpoints. A value that is none has no effect, and is told.

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: turns
  namespace: shop
  annotations:
    haproxy.router.openshift.io/balance: roundrobin
    haproxy.router.openshift.io/disable_cookies: "true"
spec:
  host: turns.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: wrong
  namespace: shop
  annotations: {haproxy.router.openshift.io/balance: fair}
spec:
  host: wrong.apps.test
  to: {kind: Service, name: web}

== backends
one: http for=shop/web
two: http for=shop/web

== requests
$ x6 curl http://turns.apps.test/
  3 × HTTP/1.1 200 OK from one
  3 × HTTP/1.1 200 OK from two
  explain: Route shop/turns gets it, on 2 endpoints
$ ~x12 curl http://wrong.apps.test/
  HTTP/1.1 200 OK from one
  HTTP/1.1 200 OK from two
  explain: Route shop/wrong gets it, on 2 endpoints

== status
route shop/turns
  ingress: default
    Admitted=True
    host: turns.apps.test
    wildcardPolicy: None

== validate
  warning: Route shop/wrong: metadata.annotations[haproxy.router.openshift.io/balance]: Unsupported value: "fair", ignored; write roundrobin, leastconn, source or random
