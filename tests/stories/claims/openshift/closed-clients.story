Clients that end their side
claims: IngressController.spec.closedClientConnectionPolicy

Whether the backend has a request before its client has ended is for the two to race about, so that is not shown (`mirror`).

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, closedClientConnectionPolicy: Continue}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: abort, namespace: openshift-ingress-operator}
spec:
  domain: abort.test
  closedClientConnectionPolicy: Abort
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== backends
one: http delay=300ms mirror for=shop/web

== requests
$ send 80 end
> GET /1 HTTP/1.1
> Host: shop.test
>
  HTTP/1.1 200 OK
  one saw GET /1 HTTP/1.1
  the connection ends
  explain: Route shop/shop gets it, on 1 endpoint
$ send 8080 end
> GET /2 HTTP/1.1
> Host: shop.test:8080
>
! when the client ends its side is no part of a question
  the connection ends without an answer
  explain: Route shop/shop gets it, on 1 endpoint
