TLS ends at the router and begins anew
claims: Route.spec.tls.destinationCACertificate
seen: x-forwarded-proto

The endpoint's certificate is verified: with the CA that the Route names, whatever its name.

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec:
  host: shop.apps.test
  to: {kind: Service, name: web}
  tls:
    termination: reencrypt
    certificate: {{cert shop.apps.test}}
    key: {{key shop.apps.test}}
    destinationCACertificate: {{ca inside}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: other, namespace: shop}
spec:
  host: other.apps.test
  to: {kind: Service, name: web}
  tls:
    termination: reencrypt
    certificate: {{cert other.apps.test}}
    key: {{key other.apps.test}}
    destinationCACertificate: {{ca}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: without, namespace: shop}
spec:
  host: without.apps.test
  to: {kind: Service, name: web}
  tls: {termination: reencrypt, certificate: {{cert without.apps.test}}, key: {{key without.apps.test}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: h2, namespace: shop}
spec:
  host: h2.apps.test
  to: {kind: Service, name: h2}
  tls:
    termination: reencrypt
    certificate: {{cert h2.apps.test}}
    key: {{key h2.apps.test}}
    destinationCACertificate: {{ca inside}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: edge, namespace: shop}
spec:
  host: edge.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, destinationCACertificate: {{ca inside}}}

== backends
one: https for=shop/web:443 "cert=anything.test by inside"
two: h2 for=shop/h2:443 "cert=anything.test by inside"

== requests
$ curl https://shop.apps.test/a?b
  HTTP/2 200
  one saw GET /a?b HTTP/1.1
    x-forwarded-proto: https
    [tls TLSv1_3, SNI web.shop.svc, ALPN http/1.1]
  explain: Route shop/shop gets it, on 1 endpoint
# Not of this CA.
$ curl https://other.apps.test/
! the certificate is known when the endpoint shows it
  HTTP/2 502
    x-sluice-cause: backend-certificate-unknown-ca
  explain: Route shop/other gets it, on 1 endpoint
# No CA at all.
$ curl https://without.apps.test/
  HTTP/2 503
    x-sluice-cause: no-destination-ca
  explain: 503: Route shop/without has it, but there is no CA to verify its endpoints with
    fix: write spec.tls.destinationCACertificate, or start the agent with --service-ca FILE
# Endpoints may speak HTTP/2, whatever the client speaks.
$ curl --http1.1 https://h2.apps.test/
  HTTP/1.1 200 OK
  two saw GET / HTTP/2
    x-forwarded-proto: https
    [tls TLSv1_3, SNI h2.shop.svc, ALPN h2]
  explain: Route shop/h2 gets it, on 1 endpoint

== status
route shop/shop
  ingress: default
    Admitted=True
    host: shop.apps.test
    wildcardPolicy: None
route shop/without
  ingress: default
    Admitted=True
    host: without.apps.test
    wildcardPolicy: None

== validate
  warning: Route shop/without: spec.to: there is no CA to verify the endpoints of Service web with: write spec.tls.destinationCACertificate, or start the agent with --service-ca FILE
  Route shop/edge: spec.tls.destinationCACertificate: Forbidden: only for reencrypt; remove it, or write termination: reencrypt
