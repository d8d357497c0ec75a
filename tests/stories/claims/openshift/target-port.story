Which ports of the endpoints
claims: Route.spec.port.targetPort

== manifests
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80}, {name: admin, port: 81}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [{{address http}}]}]
ports: [{name: http, port: {{port http}}}, {name: admin, port: {{port admin}}}]
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: name, namespace: shop}
spec: {host: name.apps.test, to: {kind: Service, name: web}, port: {targetPort: admin}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: number, namespace: shop}
spec: {host: number.apps.test, to: {kind: Service, name: web}, port: {targetPort: 3000}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: all, namespace: shop}
spec: {host: all.apps.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: none, namespace: shop}
spec: {host: none.apps.test, to: {kind: Service, name: web}, port: {targetPort: 80}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: wrong, namespace: shop}
spec: {host: wrong.apps.test, to: {kind: Service, name: web}, port: {targetPort: 0}}

== backends
http: http
admin: http at=10.1.0.1:3001

== requests
$ x3 curl http://name.apps.test/
  3 × HTTP/1.1 200 OK from admin
  explain: Route shop/name gets it, on 1 endpoint
$ x3 curl http://number.apps.test/
  3 × HTTP/1.1 200 OK from http
  explain: Route shop/number gets it, on 1 endpoint
$ ~x30 curl http://all.apps.test/
  HTTP/1.1 200 OK from admin
  HTTP/1.1 200 OK from http
  explain: Route shop/all gets it, on 2 endpoints
# The Service's port is not the endpoints'.
$ curl http://none.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-endpoints
  explain: 503: Route shop/none has it, but no service of it has a usable endpoint
    fix: Service shop/web has no port 80; its ports are 3000 http, 3001 admin: correct spec.port.targetPort
$ curl http://wrong.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: Route shop/wrong claims it and is not served: InvalidManifest: story.yaml:36: spec.port.targetPort: Invalid value: 0; write the name or the number of an endpoint port, 1 to 65535
    fix: correct the route as its condition says; `sluice validate` shows the place

== validate
  warning: Route shop/none: spec.to: Service shop/web has no port 80; its ports are 3000 http, 3001 admin: correct spec.port.targetPort
  Route shop/wrong: spec.port.targetPort: Invalid value: 0; write the name or the number of an endpoint port, 1 to 65535
