A certificate in a Secret
claims: Route.spec.tls.externalCertificate.name

== manifests
apiVersion: v1
kind: Secret
metadata: {name: shop-tls, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert shop.apps.test}}, tls.key: {{key shop.apps.test}}}
---
apiVersion: v1
kind: Secret
metadata: {name: opaque, namespace: shop}
stringData: {tls.crt: {{cert shop.apps.test}}, tls.key: {{key shop.apps.test}}}
---
apiVersion: v1
kind: Secret
metadata: {name: theirs, namespace: other}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert theirs.apps.test}}, tls.key: {{key theirs.apps.test}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec:
  host: shop.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, externalCertificate: {name: shop-tls}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: opaque, namespace: shop}
spec:
  host: opaque.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, externalCertificate: {name: opaque}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: theirs, namespace: shop}
spec:
  host: theirs.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, externalCertificate: {name: theirs}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: twice, namespace: shop}
spec:
  host: twice.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert twice.apps.test}}, key: {{key twice.apps.test}}, externalCertificate: {name: shop-tls}}

== backends
one: http for=shop/web

== requests
$ curl https://shop.apps.test/
  HTTP/2 200
  one saw GET / HTTP/1.1
  explain: Route shop/shop gets it, on 1 endpoint
$ curl --insecure https://opaque.apps.test/
  HTTP/2 503
    x-sluice-cause: no-route
  explain: 503: Route shop/opaque claims it and is not served: ExternalCertificateValidationFailed: spec.tls.externalCertificate.name: Invalid value: Secret shop/opaque has type Opaque, not kubernetes.io/tls
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl --insecure https://theirs.apps.test/
  HTTP/2 503
    x-sluice-cause: no-route
  explain: 503: Route shop/theirs claims it and is not served: ExternalCertificateGetFailed: spec.tls.externalCertificate.name: Not found: there is no Secret shop/theirs
    fix: correct the route as its condition says; `sluice validate` shows the place

== status
route shop/shop
  ingress: default
    Admitted=True
    host: shop.apps.test
    wildcardPolicy: None
route shop/opaque
  ingress: default
    Admitted=False ExternalCertificateValidationFailed: spec.tls.externalCertificate.name: Invalid value: Secret shop/opaque has type Opaque, not kubernetes.io/tls
    host: opaque.apps.test
    wildcardPolicy: None
route shop/theirs
  ingress: default
    Admitted=False ExternalCertificateGetFailed: spec.tls.externalCertificate.name: Not found: there is no Secret shop/theirs
    host: theirs.apps.test
    wildcardPolicy: None

== validate
  warning: Route shop/opaque: router default refuses it: ExternalCertificateValidationFailed: spec.tls.externalCertificate.name: Invalid value: Secret shop/opaque has type Opaque, not kubernetes.io/tls
  warning: Route shop/theirs: router default refuses it: ExternalCertificateGetFailed: spec.tls.externalCertificate.name: Not found: there is no Secret shop/theirs
  Route shop/twice: spec.tls.externalCertificate: Forbidden: certificate and key are given as well; keep one of the two
