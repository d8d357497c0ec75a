Compressed responses
claims: IngressController.spec.httpCompression.mimeTypes
answer: content-encoding, content-type, vary

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, httpCompression: {mimeTypes: [text/html]}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: wrong, namespace: openshift-ingress-operator}
spec:
  domain: wrong.test
  httpCompression: {mimeTypes: [html]}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: html, namespace: shop}
spec: {host: html.test, to: {kind: Service, name: html}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: plain, namespace: shop}
spec: {host: plain.test, to: {kind: Service, name: plain}}

== backends
html: http "header=Content-Type: text/html" "body={{filler 5000}}" for=shop/html
plain: http "body={{filler 5000}}" for=shop/plain

== requests
$ curl --compressed http://html.test/
  HTTP/1.1 200 OK
    content-type: text/html
    content-encoding: gzip
    vary: accept-encoding
  html saw GET / HTTP/1.1
  explain: Route shop/html gets it, on 1 endpoint
$ curl http://html.test/
  HTTP/1.1 200 OK
    content-type: text/html
    vary: accept-encoding
  html saw GET / HTTP/1.1
  explain: Route shop/html gets it, on 1 endpoint
$ curl --compressed http://plain.test/
  HTTP/1.1 200 OK
    content-type: text/plain
  plain saw GET / HTTP/1.1
  explain: Route shop/plain gets it, on 1 endpoint

== validate
  IngressController openshift-ingress-operator/wrong: spec.httpCompression.mimeTypes[0]: Invalid value: "html": is not a valid media type; write one such as text/html
