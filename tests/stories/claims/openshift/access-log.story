Lines of the access log
claims: IngressController.spec.logging.access.destination.type, IngressController.spec.logging.access.destination.container.maxLength, IngressController.spec.logging.access.httpLogFormat, IngressController.spec.logging.access.httpCaptureHeaders, IngressController.spec.logging.access.httpCaptureCookies

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec:
  domain: apps.test
  logging:
    access:
      destination: {type: Container, container: {maxLength: 500}}
      httpLogFormat: "%ci %b %s %ST %HM %HP %hr %hs %CC"
      httpCaptureHeaders:
        request: [{name: X-Api, maxLength: 4}]
        response: [{name: X-Answer, maxLength: 100}]
      httpCaptureCookies: [{name: session, matchType: Exact, maxLength: 20}]
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: unknown, namespace: openshift-ingress-operator}
spec:
  domain: unknown.test
  logging: {access: {destination: {type: Container}, httpLogFormat: "%ci %zz"}}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== backends
one: http "header=X-Answer: fine" for=shop/web

== requests
$ curl -H 'X-Api: abcdef' -b 'session=1; other=2' http://shop.test/a?b
  HTTP/1.1 200 OK
  one saw GET /a?b HTTP/1.1
  explain: Route shop/shop gets it, on 1 endpoint
$ log 1
  router=default line="192.0.2.1 be_http:shop:shop 10.1.0.1:3000 200 GET /a {abcd} {fine} session=1"

== status
ingresscontroller openshift-ingress-operator/default
  domain: apps.test
  Admitted=True Valid
  Available=True
  Degraded=True FieldsWithoutEffect: these fields have no effect yet: spec.logging.access.destination.container.maxLength
ingresscontroller openshift-ingress-operator/unknown
  domain: unknown.test
  Admitted=True Valid
  Available=True
  Degraded=True FieldsWithoutEffect: these fields have no effect yet: spec.logging.access.httpLogFormat

== validate
  warning: IngressController openshift-ingress-operator/default: spec.logging.access.destination.container.maxLength: has no effect: Sluice does not act on this field yet
  warning: IngressController openshift-ingress-operator/unknown: spec.logging.access.httpLogFormat: %zz cannot be written here, so lines have their usual form; leave it out
