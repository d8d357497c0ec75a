Shares of services
claims: Route.spec.to.kind, Route.spec.to.name, Route.spec.to.weight, Route.spec.alternateBackends

A share is the service's, whatever the number of its endpoints.

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: shares
  namespace: shop
  annotations: {haproxy.router.openshift.io/disable_cookies: "true"}
spec:
  host: shares.apps.test
  to: {kind: Service, name: old, weight: 3}
  alternateBackends:
  - {kind: Service, name: new, weight: 1}
  - {kind: Service, name: none, weight: 0}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: keeps, namespace: shop, annotations: {router.openshift.io/cookie_name: keeps}}
spec:
  host: keeps.apps.test
  to: {kind: Service, name: new}
  alternateBackends:
  - {kind: Service, name: old, weight: 0}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: nothing, namespace: shop}
spec: {host: nothing.apps.test, to: {kind: Service, name: new, weight: 0}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: missing, namespace: shop}
spec: {host: missing.apps.test, to: {kind: Service, name: gone}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: kind, namespace: shop}
spec: {host: kind.apps.test, to: {kind: Deployment, name: new}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: many, namespace: shop}
spec:
  host: many.apps.test
  to: {kind: Service, name: new, weight: 300}
  alternateBackends: [{kind: Service, name: a}, {kind: Service, name: b}, {kind: Service, name: c}, {kind: Service, name: d}]

== backends
one: http for=shop/old
two: http for=shop/old
three: http for=shop/old
new: http for=shop/new
none: http for=shop/none

== requests
$ x20 curl http://shares.apps.test/
  5 × HTTP/1.1 200 OK from new
  5 × HTTP/1.1 200 OK from one
  5 × HTTP/1.1 200 OK from three
  5 × HTTP/1.1 200 OK from two
  explain: Route shop/shares gets it, on 4 endpoints
$ curl http://nothing.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-endpoints
  explain: 503: Route shop/nothing has it, but no service of it has a usable endpoint
    fix: give a service of Route shop/nothing a weight above 0
$ curl http://missing.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-endpoints
  explain: 503: Route shop/missing has it, but no service of it has a usable endpoint
    fix: Service shop/gone does not exist; create it, or name another
$ curl http://kind.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: Route shop/kind claims it and is not served: InvalidManifest: story.yaml:36: spec.to.kind: Unsupported value: "Deployment"; write Service
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://many.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: Route shop/many claims it and is not served: InvalidManifest: story.yaml:44: spec.alternateBackends: has 4 items; use at most 3 (and 1 more)
    fix: correct the route as its condition says; `sluice validate` shows the place

== status
route shop/shares
  ingress: default
    Admitted=True
    host: shares.apps.test
    wildcardPolicy: None
route shop/kind
  ingress: default
    Admitted=False InvalidManifest: story.yaml:36: spec.to.kind: Unsupported value: "Deployment"; write Service
    host: kind.apps.test
    wildcardPolicy: None

== validate
  warning: Route shop/missing: spec.to: Service shop/gone does not exist; create it, or name another
  Route shop/kind: spec.to.kind: Unsupported value: "Deployment"; write Service
  Route shop/many: spec.to.weight: Invalid value: 300; write a number from 0 to 256
  Route shop/many: spec.alternateBackends: has 4 items; use at most 3
