A weight of 0 keeps the clients that are there
claims: Route.spec.to.weight
mask: keeps=[0-9a-f]+

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: keeps, namespace: shop, annotations: {router.openshift.io/cookie_name: keeps}}
spec:
  host: keeps.apps.test
  to: {kind: Service, name: old}
  alternateBackends:
  - {kind: Service, name: new, weight: 0}

== manifests later story
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: keeps, namespace: shop, annotations: {router.openshift.io/cookie_name: keeps}}
spec:
  host: keeps.apps.test
  to: {kind: Service, name: old, weight: 0}
  alternateBackends:
  - {kind: Service, name: new}

== backends
old: http for=shop/old
new: http for=shop/new

== requests
$ curl -c jar http://keeps.apps.test/
  HTTP/1.1 200 OK
  old saw GET / HTTP/1.1
  explain: Route shop/keeps gets it, on 1 endpoint
$ apply story
$ x4 curl -b jar http://keeps.apps.test/
  4 × HTTP/1.1 200 OK from old
  explain: Route shop/keeps gets it, on 1 endpoint
$ x4 curl http://keeps.apps.test/
  4 × HTTP/1.1 200 OK from new
  explain: Route shop/keeps gets it, on 1 endpoint
