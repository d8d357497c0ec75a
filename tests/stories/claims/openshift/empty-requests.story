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
$ send 8080 end
$ curl http://shop.test:8080/
$ log 2
