How much one endpoint gets at the same time
claims: haproxy.router.openshift.io/pod-concurrent-connections

With one request under way the next one waits.

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: one
  namespace: shop
  annotations: {haproxy.router.openshift.io/pod-concurrent-connections: "1"}
spec:
  host: one.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: wrong
  namespace: shop
  annotations: {haproxy.router.openshift.io/pod-concurrent-connections: few}
spec:
  host: wrong.apps.test
  to: {kind: Service, name: web}

== backends
one: http hold for=shop/web

== requests
$ curl http://one.apps.test/first &
$ curl --max-time 1 http://one.apps.test/second
! what is under way is no part of a question
  no answer in time
  explain: Route shop/one gets it, on 1 endpoint
$ curl http://wrong.apps.test/third &
$ release
$ wait
  $ curl http://one.apps.test/first
  HTTP/1.1 200 OK
  one saw GET /first HTTP/1.1
  explain: Route shop/one gets it, on 1 endpoint
  $ curl http://wrong.apps.test/third
  HTTP/1.1 200 OK
  one saw GET /third HTTP/1.1
  explain: Route shop/wrong gets it, on 1 endpoint
$ curl http://one.apps.test/fourth
  HTTP/1.1 200 OK
  one saw GET /fourth HTTP/1.1
  explain: Route shop/one gets it, on 1 endpoint

== validate
  warning: Route shop/wrong: metadata.annotations[haproxy.router.openshift.io/pod-concurrent-connections]: Invalid value: "few", ignored; write a whole number, such as 100; 0 for no limit
