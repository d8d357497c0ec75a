Routes compare what was sent, unless the router says otherwise
claims: router.sluice.dev/normalize-path, router.sluice.dev/merge-slashes

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: admin, namespace: shop}
spec: {host: shop.apps.test, path: /admin, to: {kind: Service, name: admin}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: web, namespace: shop}
spec: {host: shop.apps.test, to: {kind: Service, name: web}}

== manifests later normal
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata:
  name: default
  namespace: openshift-ingress-operator
  annotations: {router.sluice.dev/normalize-path: "true"}
spec: {domain: apps.test}

== manifests later kept
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata:
  name: default
  namespace: openshift-ingress-operator
  annotations: {router.sluice.dev/normalize-path: "true", router.sluice.dev/merge-slashes: "false"}
spec: {domain: apps.test}

== backends
web: http for=shop/web
admin: http for=shop/admin

== requests
$ curl --path-as-is http://shop.apps.test/admin/1
  HTTP/1.1 200 OK
  admin saw GET /admin/1 HTTP/1.1
  explain: Route shop/admin gets it, on 1 endpoint
$ curl --path-as-is http://shop.apps.test/x/../admin//1
  HTTP/1.1 200 OK
  web saw GET /x/../admin//1 HTTP/1.1
  explain: Route shop/web gets it, on 1 endpoint
$ curl --path-as-is http://shop.apps.test//admin
  HTTP/1.1 200 OK
  web saw GET //admin HTTP/1.1
  explain: Route shop/web gets it, on 1 endpoint
$ apply normal
$ curl --path-as-is http://shop.apps.test/x/../admin//1
  HTTP/1.1 200 OK
  admin saw GET /admin/1 HTTP/1.1
  explain: Route shop/admin gets it, on 1 endpoint
$ curl --path-as-is http://shop.apps.test//admin
  HTTP/1.1 200 OK
  admin saw GET /admin HTTP/1.1
  explain: Route shop/admin gets it, on 1 endpoint
$ apply kept
$ curl --path-as-is http://shop.apps.test/x/../admin//1
  HTTP/1.1 200 OK
  admin saw GET /admin//1 HTTP/1.1
  explain: Route shop/admin gets it, on 1 endpoint
$ curl --path-as-is http://shop.apps.test//admin
  HTTP/1.1 200 OK
  web saw GET //admin HTTP/1.1
  explain: Route shop/web gets it, on 1 endpoint
