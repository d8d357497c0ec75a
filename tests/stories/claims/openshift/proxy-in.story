Clients behind a proxy
claims: IngressController.spec.endpointPublishingStrategy.hostNetwork.protocol, IngressController.spec.endpointPublishingStrategy.nodePort.protocol, IngressController.spec.endpointPublishingStrategy.private.protocol
seen: x-forwarded-for

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 80, httpsPort: 443, statsPort: 1936, protocol: PROXY}}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: node-port, namespace: openshift-ingress-operator}
spec: {domain: node.test, endpointPublishingStrategy: {type: NodePortService, hostNetwork: {httpPort: 8080, httpsPort: 8443}, nodePort: {protocol: PROXY}}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: private, namespace: openshift-ingress-operator}
spec: {domain: private.test, endpointPublishingStrategy: {type: Private, hostNetwork: {httpPort: 9080, httpsPort: 9443}, private: {protocol: PROXY}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ send 80
> PROXY TCP4 203.0.113.5 203.0.113.80 5555 80
> GET / HTTP/1.1
> Host: shop.test
> Connection: close
>
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 203.0.113.5
  the connection ends
  explain: Route shop/shop gets it, on 1 endpoint
$ curl --haproxy-protocol http://shop.test:8080/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 192.0.2.1
  explain: Route shop/shop gets it, on 1 endpoint
$ curl --haproxy-protocol http://shop.test:9080/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 192.0.2.1
  explain: Route shop/shop gets it, on 1 endpoint
# Without a header nothing is served.
$ curl http://shop.test/
! what a proxy sends first is no part of a question
  the connection ends without an answer
  explain: Route shop/shop gets it, on 1 endpoint
