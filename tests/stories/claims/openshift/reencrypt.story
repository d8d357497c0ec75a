TLS ends at the router and begins anew
claims: spec.tls.destinationCACertificate
seen: x-forwarded-proto

The endpoint's certificate is verified with the CA that the Route names.

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

== backends
one: https for=shop/web "cert=web.shop.svc by inside"

== requests
$ curl https://shop.apps.test/a?b
  HTTP/2 200
  one saw GET /a?b HTTP/1.1
    x-forwarded-proto: https
    [tls TLSv1_3, SNI web.shop.svc, ALPN http/1.1]
  explain: Route shop/shop gets it, on 1 endpoint

# The endpoint's certificate is not of this CA.
$ curl https://other.apps.test/
! the certificate is known when the endpoint shows it
  HTTP/2 502
    x-sluice-cause: backend-certificate-unknown-ca
  explain: Route shop/other gets it, on 1 endpoint

$ openssl s_client -servername shop.apps.test -alpn h2
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = shop.apps.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for shop.apps.test ends here; the path decides which route gets a request

== status
route shop/shop
  ingress: default
    Admitted=True
    host: shop.apps.test
    wildcardPolicy: None
