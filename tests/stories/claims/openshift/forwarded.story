Where a request came from
claims: haproxy.router.openshift.io/set-forwarded-headers
seen: x-forwarded-for, x-forwarded-host, x-forwarded-port, x-forwarded-proto, x-forwarded-proto-version, forwarded

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: append, namespace: shop, annotations: {haproxy.router.openshift.io/set-forwarded-headers: append}}
spec:
  host: append.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert append.apps.test}}, key: {{key append.apps.test}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: replace, namespace: shop, annotations: {haproxy.router.openshift.io/set-forwarded-headers: replace}}
spec:
  host: replace.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: if-none, namespace: shop, annotations: {haproxy.router.openshift.io/set-forwarded-headers: if-none}}
spec:
  host: if-none.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: never, namespace: shop, annotations: {haproxy.router.openshift.io/set-forwarded-headers: never}}
spec:
  host: never.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: wrong, namespace: shop, annotations: {haproxy.router.openshift.io/set-forwarded-headers: always}}
spec:
  host: wrong.apps.test
  to: {kind: Service, name: web}

== backends
one: http for=shop/web

== requests
$ curl -H 'X-Forwarded-For: 203.0.113.9' -H 'Forwarded: for=203.0.113.9' https://append.apps.test/
  HTTP/2 200
  one saw GET / HTTP/1.1
    x-forwarded-for: 203.0.113.9
    x-forwarded-for: 192.0.2.1
    forwarded: for=203.0.113.9
    forwarded: for=192.0.2.1;host=append.apps.test;proto=https
    x-forwarded-host: append.apps.test
    x-forwarded-port: 443
    x-forwarded-proto: https
    x-forwarded-proto-version: h2
  explain: Route shop/append gets it, on 1 endpoint
$ curl -H 'X-Forwarded-For: 203.0.113.9' -H 'Forwarded: for=203.0.113.9' http://replace.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 192.0.2.1
    x-forwarded-host: replace.apps.test
    x-forwarded-port: 80
    x-forwarded-proto: http
    forwarded: for=192.0.2.1;host=replace.apps.test;proto=http
  explain: Route shop/replace gets it, on 1 endpoint
$ curl -H 'X-Forwarded-For: 203.0.113.9' http://if-none.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 203.0.113.9
    x-forwarded-host: if-none.apps.test
    x-forwarded-port: 80
    x-forwarded-proto: http
    forwarded: for=192.0.2.1;host=if-none.apps.test;proto=http
  explain: Route shop/if-none gets it, on 1 endpoint
$ curl -H 'X-Forwarded-For: 203.0.113.9' http://never.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 203.0.113.9
  explain: Route shop/never gets it, on 1 endpoint
$ curl -H 'X-Forwarded-For: 203.0.113.9' http://wrong.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 203.0.113.9
    x-forwarded-for: 192.0.2.1
    x-forwarded-host: wrong.apps.test
    x-forwarded-port: 80
    x-forwarded-proto: http
    forwarded: for=192.0.2.1;host=wrong.apps.test;proto=http
  explain: Route shop/wrong gets it, on 1 endpoint

== validate
  warning: Route shop/wrong: metadata.annotations[haproxy.router.openshift.io/set-forwarded-headers]: Unsupported value: "always", ignored; write append, replace, if-none or never
