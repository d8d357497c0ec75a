Clients that do not close
claims: IngressController.spec.tuningOptions.clientFinTimeout

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, tuningOptions: {clientFinTimeout: 200ms}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: patient, namespace: openshift-ingress-operator}
spec:
  domain: patient.test
  tuningOptions: {clientFinTimeout: 1500ms}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ open line 80
$ write line
> GET / HTTP/1.1
> Host: shop.test
> Connection: close
>
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  the connection ends
$ taken line 0 1000
  the router takes bytes for 0 to 1000 ms
$ open patient 8080
$ write patient
> GET / HTTP/1.1
> Host: shop.test:8080
> Connection: close
>
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  the connection ends
$ taken patient 1100 5000
  the router takes bytes for 1100 to 5000 ms
