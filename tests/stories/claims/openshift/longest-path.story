The longest path that a request is under
claims: Route.spec.path, Longest path

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: all, namespace: shop}
spec: {host: shop.apps.test, to: {kind: Service, name: all}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: cart, namespace: shop}
spec: {host: shop.apps.test, path: /cart, to: {kind: Service, name: cart}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: slash, namespace: shop}
spec: {host: shop.apps.test, path: /blog/, to: {kind: Service, name: blog}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: wrong, namespace: shop}
spec: {host: wrong.apps.test, path: cart, to: {kind: Service, name: cart}}

== backends
all: http for=shop/all
cart: http for=shop/cart
blog: http for=shop/blog

== requests
$ curl http://shop.apps.test/
  HTTP/1.1 200 OK
  all saw GET / HTTP/1.1
  explain: Route shop/all gets it, on 1 endpoint
$ curl http://shop.apps.test/cart
  HTTP/1.1 200 OK
  cart saw GET /cart HTTP/1.1
  explain: Route shop/cart gets it, on 1 endpoint
$ curl http://shop.apps.test/cart/1?x=y
  HTTP/1.1 200 OK
  cart saw GET /cart/1?x=y HTTP/1.1
  explain: Route shop/cart gets it, on 1 endpoint
$ curl http://shop.apps.test/cartoon
  HTTP/1.1 200 OK
  all saw GET /cartoon HTTP/1.1
  explain: Route shop/all gets it, on 1 endpoint
$ curl http://shop.apps.test/Cart
  HTTP/1.1 200 OK
  all saw GET /Cart HTTP/1.1
  explain: Route shop/all gets it, on 1 endpoint
$ curl http://shop.apps.test/blog/1
  HTTP/1.1 200 OK
  blog saw GET /blog/1 HTTP/1.1
  explain: Route shop/slash gets it, on 1 endpoint
$ curl http://shop.apps.test/blog
  HTTP/1.1 200 OK
  all saw GET /blog HTTP/1.1
  explain: Route shop/all gets it, on 1 endpoint
# Paths are compared as they are sent.
$ curl --path-as-is http://shop.apps.test/x/../cart
  HTTP/1.1 200 OK
  all saw GET /x/../cart HTTP/1.1
  explain: Route shop/all gets it, on 1 endpoint
$ curl http://shop.apps.test//cart
  HTTP/1.1 200 OK
  all saw GET //cart HTTP/1.1
  explain: Route shop/all gets it, on 1 endpoint
$ curl http://shop.apps.test/%63art
  HTTP/1.1 200 OK
  all saw GET /%63art HTTP/1.1
  explain: Route shop/all gets it, on 1 endpoint

== validate
  Route shop/wrong: spec.path: Invalid value: "cart"; write "/cart"
