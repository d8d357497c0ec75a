Where requests came from, for all Routes
claims: IngressController.spec.httpHeaders.forwardedHeaderPolicy
seen: x-forwarded-for, x-forwarded-host, x-forwarded-port, x-forwarded-proto, forwarded

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, httpHeaders: {forwardedHeaderPolicy: Append}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: replace, namespace: openshift-ingress-operator}
spec:
  domain: replace.test
  httpHeaders: {forwardedHeaderPolicy: Replace}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: if-none, namespace: openshift-ingress-operator}
spec:
  domain: if-none.test
  httpHeaders: {forwardedHeaderPolicy: IfNone}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 9080, httpsPort: 9443}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: never, namespace: openshift-ingress-operator}
spec:
  domain: never.test
  httpHeaders: {forwardedHeaderPolicy: Never}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 10080, httpsPort: 10443}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: wrong, namespace: openshift-ingress-operator}
spec:
  domain: wrong.test
  httpHeaders: {forwardedHeaderPolicy: Always}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 11080, httpsPort: 11443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ curl -H 'X-Forwarded-For: 203.0.113.9' http://shop.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 203.0.113.9
    x-forwarded-for: 192.0.2.1
    x-forwarded-host: shop.test
    x-forwarded-port: 80
    x-forwarded-proto: http
    forwarded: for=192.0.2.1;host=shop.test;proto=http
  explain: Route shop/shop gets it, on 1 endpoint
$ curl -H 'X-Forwarded-For: 203.0.113.9' http://shop.test:8080/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 192.0.2.1
    x-forwarded-host: shop.test:8080
    x-forwarded-port: 8080
    x-forwarded-proto: http
    forwarded: for=192.0.2.1;host="shop.test:8080";proto=http
  explain: Route shop/shop gets it, on 1 endpoint
$ curl -H 'X-Forwarded-For: 203.0.113.9' http://shop.test:9080/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 203.0.113.9
    x-forwarded-host: shop.test:9080
    x-forwarded-port: 9080
    x-forwarded-proto: http
    forwarded: for=192.0.2.1;host="shop.test:9080";proto=http
  explain: Route shop/shop gets it, on 1 endpoint
$ curl http://shop.test:9080/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 192.0.2.1
    x-forwarded-host: shop.test:9080
    x-forwarded-port: 9080
    x-forwarded-proto: http
    forwarded: for=192.0.2.1;host="shop.test:9080";proto=http
  explain: Route shop/shop gets it, on 1 endpoint
$ curl -H 'X-Forwarded-For: 203.0.113.9' http://shop.test:10080/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
    x-forwarded-for: 203.0.113.9
  explain: Route shop/shop gets it, on 1 endpoint
$ curl http://shop.test:11080/
  no connection
  explain: no router listens on port 11080 for http
    fix: ask on port 80 or 9080 or 10080 or 8080 for http

== status
ingresscontroller openshift-ingress-operator/wrong
  Admitted=False InvalidManifest: story.yaml:35: spec.httpHeaders.forwardedHeaderPolicy: Unsupported value: "Always"; write Append, Replace, IfNone or Never

== validate
  IngressController openshift-ingress-operator/wrong: spec.httpHeaders.forwardedHeaderPolicy: Unsupported value: "Always"; write Append, Replace, IfNone or Never
