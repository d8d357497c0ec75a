How large a request's head may be
claims: IngressController.spec.tuningOptions.headerBufferBytes, IngressController.spec.tuningOptions.headerBufferMaxRewriteBytes

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, tuningOptions: {headerBufferBytes: 16384, headerBufferMaxRewriteBytes: 12288}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: large, namespace: openshift-ingress-operator}
spec:
  domain: large.test
  tuningOptions: {headerBufferBytes: 65536}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: wrong, namespace: openshift-ingress-operator}
spec:
  domain: wrong.test
  tuningOptions: {headerBufferBytes: 1000, headerBufferMaxRewriteBytes: 40000}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ curl -H 'X-Long: {{filler 3000}}' http://shop.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/shop gets it, on 1 endpoint
$ curl -H 'X-Long: {{filler 5000}}' http://shop.test/
! how long a request's fields are is no part of a question
  HTTP/1.1 431 Request Header Fields Too Large
    x-sluice-cause: bad-request
  explain: Route shop/shop gets it, on 1 endpoint
$ curl -H 'X-Long: {{filler 30000}}' http://shop.test:8080/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/shop gets it, on 1 endpoint
$ curl -H 'X-Long: {{filler 40000}}' http://shop.test:8080/
! how long a request's fields are is no part of a question
  HTTP/1.1 431 Request Header Fields Too Large
    x-sluice-cause: bad-request
  explain: Route shop/shop gets it, on 1 endpoint

== status
ingresscontroller openshift-ingress-operator/large
  domain: large.test
  Admitted=True Valid
  Available=True
  Degraded=True HeaderLimitReduced: spec.tuningOptions.headerBufferBytes: less headerBufferMaxRewriteBytes it is 57344, and the head of a request may have 32768 bytes at most; that is the limit

== validate
  warning: IngressController openshift-ingress-operator/large: HeaderLimitReduced: spec.tuningOptions.headerBufferBytes: less headerBufferMaxRewriteBytes it is 57344, and the head of a request may have 32768 bytes at most; that is the limit
  IngressController openshift-ingress-operator/wrong: spec.tuningOptions.headerBufferBytes: Invalid value: 1000; write a number from 16384 to 2147483647
  IngressController openshift-ingress-operator/wrong: spec.tuningOptions.headerBufferMaxRewriteBytes: Invalid value: the room for rewriting is not below headerBufferBytes, 32768; lower it
