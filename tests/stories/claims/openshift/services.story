Services and their endpoints
claims: appProtocol, conditions, idling.alpha.openshift.io/idled-at, ingresses.config.openshift.io

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: h2c, namespace: shop}
spec: {host: h2c.apps.test, to: {kind: Service, name: h2c}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: ready, namespace: shop}
spec: {host: ready.apps.test, to: {kind: Service, name: ready}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: draining, namespace: shop}
spec: {host: draining.apps.test, to: {kind: Service, name: draining}}
---
apiVersion: v1
kind: Service
metadata: {name: ready, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ready-1, namespace: shop, labels: {kubernetes.io/service-name: ready}}
addressType: IPv4
endpoints:
- {addresses: [{{address well}}], conditions: {ready: true}}
- {addresses: [{{address ill}}], conditions: {ready: false}}
- {addresses: [{{address leaving}}], conditions: {ready: false, serving: true, terminating: true}}
ports: [{name: http, port: 3000}]
---
apiVersion: v1
kind: Service
metadata: {name: draining, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: draining-1, namespace: shop, labels: {kubernetes.io/service-name: draining}}
addressType: IPv4
endpoints:
- {addresses: [{{address ill}}], conditions: {ready: false}}
- {addresses: [{{address leaving}}], conditions: {ready: false, serving: true, terminating: true}}
ports: [{name: http, port: 3000}]
---
apiVersion: v1
kind: Service
metadata:
  name: idled
  namespace: shop
  annotations: {idling.alpha.openshift.io/idled-at: "2025-01-01T00:00:00Z", idling.alpha.openshift.io/unidle-targets: "[]"}
spec: {ports: [{name: http, port: 80}], clusterIP: 10.96.0.1}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: idled, namespace: shop}
spec: {host: idled.apps.test, to: {kind: Service, name: idled}}
---
apiVersion: config.openshift.io/v1
kind: Ingress
metadata: {name: cluster}
spec: {domain: config.test}

== backends
two: h2c for=shop/h2c app=h2c
well: http
ill: http
leaving: http

== requests
$ curl http://h2c.apps.test/
  HTTP/1.1 200 OK
  two saw GET / HTTP/2
  explain: Route shop/h2c gets it, on 1 endpoint
$ x4 curl http://ready.apps.test/
  4 × HTTP/1.1 200 OK from well
  explain: Route shop/ready gets it, on 1 endpoint
$ x4 curl http://draining.apps.test/
  4 × HTTP/1.1 200 OK from leaving
  explain: Route shop/draining gets it, on 1 endpoint
$ curl http://idled.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-endpoints
  explain: 503: Route shop/idled has it, but no service of it has a usable endpoint
    fix: Service shop/idled has no EndpointSlice; one needs the label kubernetes.io/service-name: idled

== validate
  warning: Route shop/idled: spec.to: Service shop/idled has no EndpointSlice; one needs the label kubernetes.io/service-name: idled
  warning: kind Ingress of config.openshift.io/v1 is not read, ignored
