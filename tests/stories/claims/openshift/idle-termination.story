Connections that are idle when the router ends
claims: IngressController.spec.idleConnectionTerminationPolicy
flags: --drain 10
answer: connection

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, idleConnectionTerminationPolicy: Deferred}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: immediate, namespace: openshift-ingress-operator}
spec:
  domain: immediate.test
  idleConnectionTerminationPolicy: Immediate
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ open deferred 80
$ write deferred
> GET /1 HTTP/1.1
> Host: shop.test
>
  HTTP/1.1 200 OK
  one saw GET /1 HTTP/1.1
$ open immediate 8080
$ write immediate
> GET /2 HTTP/1.1
> Host: shop.test
>
  HTTP/1.1 200 OK
  one saw GET /2 HTTP/1.1
$ terminate
$ write deferred
> GET /3 HTTP/1.1
> Host: shop.test
>
  HTTP/1.1 200 OK
    connection: close
  one saw GET /3 HTTP/1.1
  the connection ends
$ write immediate
> GET /4 HTTP/1.1
> Host: shop.test
>
  the connection ends without an answer
