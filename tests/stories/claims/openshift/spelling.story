The spelling of field names
claims: haproxy.router.openshift.io/h1-adjust-case, IngressController.spec.httpHeaders.headerNameCaseAdjustments
seen: x-api-key
answer: echo-spelling

HTTP/1 peers that are particular about upper case get it: clients always, endpoints where the Route asks for it.

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec:
  domain: apps.test
  httpHeaders: {headerNameCaseAdjustments: [X-API-Key, ECHO-Spelling]}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: particular, namespace: shop, annotations: {haproxy.router.openshift.io/h1-adjust-case: "true"}}
spec:
  host: particular.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: usual, namespace: shop}
spec:
  host: usual.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: wrong, namespace: shop, annotations: {haproxy.router.openshift.io/h1-adjust-case: "yes"}}
spec:
  host: wrong.apps.test
  to: {kind: Service, name: web}

== backends
one: http "header=echo-spelling: as adjusted" for=shop/web

== requests
$ curl -H 'x-api-key: 1' http://particular.apps.test/
  HTTP/1.1 200 OK
    ECHO-Spelling: as adjusted
  one saw GET / HTTP/1.1
    X-API-Key: 1
  explain: Route shop/particular gets it, on 1 endpoint
$ curl -H 'x-api-key: 1' http://usual.apps.test/
  HTTP/1.1 200 OK
    ECHO-Spelling: as adjusted
  one saw GET / HTTP/1.1
    x-api-key: 1
  explain: Route shop/usual gets it, on 1 endpoint
$ curl -H 'x-api-key: 1' http://wrong.apps.test/
  HTTP/1.1 200 OK
    ECHO-Spelling: as adjusted
  one saw GET / HTTP/1.1
    x-api-key: 1
  explain: Route shop/wrong gets it, on 1 endpoint


== validate
  warning: Route shop/wrong: metadata.annotations[haproxy.router.openshift.io/h1-adjust-case]: Unsupported value: "yes", ignored; write true or false
