The CA of services' own certificates
claims: Route.spec.tls.destinationCACertificate
flags: --service-ca {{ca services}}

Where a Route names no CA, that of `--service-ca` is taken, and the certificate must be for SERVICE.NAMESPACE.svc.

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: good, namespace: shop}
spec:
  host: good.apps.test
  to: {kind: Service, name: good}
  tls: {termination: reencrypt, certificate: {{cert good.apps.test}}, key: {{key good.apps.test}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: bad, namespace: shop}
spec:
  host: bad.apps.test
  to: {kind: Service, name: bad}
  tls: {termination: reencrypt, certificate: {{cert bad.apps.test}}, key: {{key bad.apps.test}}}

== backends
good: https for=shop/good:443 "cert=good.shop.svc by services"
bad: https for=shop/bad:443 "cert=other.shop.svc by services"

== requests
$ curl https://good.apps.test/
  HTTP/2 200
  good saw GET / HTTP/1.1
    [tls TLSv1_3, SNI good.shop.svc, ALPN http/1.1]
  explain: Route shop/good gets it, on 1 endpoint
$ curl https://bad.apps.test/
! the certificate is known when the endpoint shows it
  HTTP/2 502
    x-sluice-cause: backend-certificate-name
  explain: Route shop/bad gets it, on 1 endpoint
