Another path in the place of the Route's
claims: haproxy.router.openshift.io/rewrite-target

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: root, namespace: shop, annotations: {haproxy.router.openshift.io/rewrite-target: /}}
spec:
  host: shop.apps.test
  path: /cart
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: inner, namespace: shop, annotations: {haproxy.router.openshift.io/rewrite-target: /v2/in}}
spec:
  host: shop.apps.test
  path: /inner
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: wrong, namespace: shop, annotations: {haproxy.router.openshift.io/rewrite-target: v2}}
spec:
  host: shop.apps.test
  path: /wrong
  to: {kind: Service, name: web}

== backends
one: http for=shop/web

== requests
$ curl http://shop.apps.test/cart
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/root gets it, on 1 endpoint
$ curl http://shop.apps.test/cart/1?a=b
  HTTP/1.1 200 OK
  one saw GET /1?a=b HTTP/1.1
  explain: Route shop/root gets it, on 1 endpoint
$ curl http://shop.apps.test/inner/x
  HTTP/1.1 200 OK
  one saw GET /v2/in/x HTTP/1.1
  explain: Route shop/inner gets it, on 1 endpoint
$ curl http://shop.apps.test/wrong/x
  HTTP/1.1 200 OK
  one saw GET /wrong/x HTTP/1.1
  explain: Route shop/wrong gets it, on 1 endpoint

== validate
  warning: Route shop/wrong: metadata.annotations[haproxy.router.openshift.io/rewrite-target]: Invalid value: "v2", ignored: must begin with /; write a path such as /
