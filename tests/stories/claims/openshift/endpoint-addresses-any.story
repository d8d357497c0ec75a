Addresses of a folder that is the operator's own
claims: --endpoint-addresses
flags: --endpoint-addresses any

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: loopback, namespace: shop}
spec: {host: loopback.apps.test, to: {kind: Service, name: loopback}}

== backends
loopback: http at=127.0.0.1:3000 for=shop/loopback

== requests
$ curl http://loopback.apps.test/
  HTTP/1.1 200 OK
  loopback saw GET / HTTP/1.1
  explain: Route shop/loopback gets it, on 1 endpoint
