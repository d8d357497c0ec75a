Pools of prepared backends
claims: router.openshift.io/pool-size

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop, annotations: {router.openshift.io/pool-size: "3"}}
spec: {host: shop.apps.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ curl http://shop.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/shop gets it, on 1 endpoint

== validate
  warning: Route shop/shop: metadata.annotations[router.openshift.io/pool-size]: has no effect: there are no pools of prepared backends; remove it
