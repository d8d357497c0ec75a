Strict-Transport-Security
claims: haproxy.router.openshift.io/hsts_header
answer: strict-transport-security

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: safe
  namespace: shop
  annotations: {haproxy.router.openshift.io/hsts_header: max-age=31536000;includeSubDomains}
spec:
  host: safe.apps.test
  to: {kind: Service, name: web}
  tls:
    termination: edge
    insecureEdgeTerminationPolicy: Allow
    certificate: {{cert safe.apps.test}}
    key: {{key safe.apps.test}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: wrong
  namespace: shop
  annotations: {haproxy.router.openshift.io/hsts_header: includeSubDomains}
spec:
  host: wrong.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert wrong.apps.test}}, key: {{key wrong.apps.test}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: clear
  namespace: shop
  annotations: {haproxy.router.openshift.io/hsts_header: max-age=1}
spec:
  host: clear.apps.test
  to: {kind: Service, name: web}

== backends
one: http for=shop/web

== requests
$ curl https://safe.apps.test/
  HTTP/2 200
    strict-transport-security: max-age=31536000;includeSubDomains
  one saw GET / HTTP/1.1
  explain: Route shop/safe gets it, on 1 endpoint
$ curl http://safe.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/safe gets it, on 1 endpoint
$ curl https://wrong.apps.test/
  HTTP/2 200
  one saw GET / HTTP/1.1
  explain: Route shop/wrong gets it, on 1 endpoint
$ curl http://clear.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/clear gets it, on 1 endpoint

== validate
  warning: Route shop/wrong: metadata.annotations[haproxy.router.openshift.io/hsts_header]: Invalid value: "includeSubDomains", ignored; write for example max-age=31536000;includeSubDomains;preload
  warning: Route shop/clear: metadata.annotations[haproxy.router.openshift.io/hsts_header]: has no meaning for a route without spec.tls, ignored; remove it, or use edge
