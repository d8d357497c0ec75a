An identity for each request
claims: IngressController.spec.httpHeaders.uniqueId.name, IngressController.spec.httpHeaders.uniqueId.format
seen: x-request-id

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, httpHeaders: {uniqueId: {name: X-Request-Id, format: "%ci at %fi:%fp"}}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: unknown, namespace: openshift-ingress-operator}
spec:
  domain: unknown.test
  httpHeaders: {uniqueId: {name: X-Request-Id, format: "%[rand(5)]"}}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-request-id: 192.0.2.1 at 10.0.0.1:80
  explain: Route shop/shop gets it, on 1 endpoint
$ curl http://shop.test:8080/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/shop gets it, on 1 endpoint

== status
ingresscontroller openshift-ingress-operator/unknown
  domain: unknown.test
  Admitted=True Valid
  Available=True
  Degraded=True FieldsWithoutEffect: these fields have no effect yet: spec.httpHeaders.uniqueId.format

== validate
  warning: IngressController openshift-ingress-operator/unknown: spec.httpHeaders.uniqueId.format: %[rand(5)] cannot be written here, so the header is not sent; use %ci, %cp, %fi, %fp, %Ts, %ms, %rt, %pid and %[uuid]
