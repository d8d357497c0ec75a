Connections without a request
claims: IngressController.spec.httpEmptyRequestsPolicy, IngressController.spec.logging.access.logEmptyRequests
mask: client=\S+|duration\S*=\S+

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, tuningOptions: {httpKeepAliveTimeout: 300ms}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: ignore, namespace: openshift-ingress-operator}
spec:
  domain: ignore.test
  httpEmptyRequestsPolicy: Ignore
  tuningOptions: {httpKeepAliveTimeout: 300ms}
  logging: {access: {destination: {type: Container}, logEmptyRequests: Ignore}}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ send 80 end
  HTTP/1.1 400 Bad Request
    x-sluice-cause: empty-request
  the connection ends
$ send 8080 end
  the connection ends without an answer
$ curl http://shop.test:8080/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/shop gets it, on 1 endpoint
$ log 2
  router=default … listener=10.0.0.1:80 host="-" method="-" path="-" status=400 route=- endpoint=- bytes_in=0 bytes_out=169 … flags="ER" cause="empty-request" datapath="proxy"
  router=ignore … listener=10.0.0.1:8080 host="shop.test" method="GET" path="/" status=200 route=shop/shop endpoint=10.1.0.1:3000 bytes_in=0 bytes_out=241 … flags="-" datapath="proxy"
