Hosts that are written, and hosts that are made
claims: Route.spec.host, Route.spec.subdomain, openshift.io/host.generated, route.openshift.io/allow-non-dns-compliant-host
flags: --cluster-domain cluster.test

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: written, namespace: shop}
spec: {host: written.example.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: made.here, namespace: shop}
spec: {to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: below, namespace: shop}
spec: {subdomain: a.b, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: both, namespace: shop}
spec: {host: both.example.test, subdomain: both, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: upper, namespace: shop}
spec: {host: Upper.example.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: long, namespace: shop, annotations: {route.openshift.io/allow-non-dns-compliant-host: "true"}}
spec: {host: {{filler 64}}.example.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ curl http://written.example.test/
# Upper and lower case are the same in a request, a dot at the end and a port are nothing.
$ curl -H 'Host: WRITTEN.example.test.:80' http://written.example.test/
$ curl http://made-here-shop.cluster.test/
$ curl http://a.b.apps.test/
$ curl http://both.example.test/
$ curl http://both.apps.test/
$ curl http://upper.example.test/
$ curl http://{{filler 64}}.example.test/

== status
route shop/written
route shop/made.here
route shop/below
route shop/both
route shop/upper
route shop/long

== validate
