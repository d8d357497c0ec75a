Names beside hostname are verified in its place
claims: BackendTLSPolicySANValidation

`hostname` is SNI in any case.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 80, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.test]
  rules:
  - matches: [{path: {value: /other}}]
    backendRefs: [{name: other, port: 80}]
  - matches: [{path: {value: /uri}}]
    backendRefs: [{name: uri, port: 80}]
  - backendRefs: [{name: listed, port: 80}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ca, namespace: shop}
data: {ca.crt: {{ca inside}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: listed, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: listed}]
  validation:
    hostname: front.internal
    caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]
    subjectAltNames: [{type: URI, uri: "spiffe://shop/app"}, {type: Hostname, hostname: app.internal}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: other, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: other}]
  validation:
    hostname: app.internal
    caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]
    subjectAltNames: [{type: Hostname, hostname: other.internal}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: uri, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: uri}]
  validation:
    hostname: app.internal
    caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]
    subjectAltNames: [{type: URI, uri: "spiffe://shop/app"}]

== backends
listed: https for=shop/listed "cert=app.internal by inside"
other: https for=shop/other "cert=app.internal by inside"
uri: https for=shop/uri "cert=app.internal by inside"

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  listed saw GET / HTTP/1.1
    [tls TLSv1_3, SNI front.internal, ALPN http/1.1]
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/other
! the certificate is known when the endpoint shows it
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: backend-certificate-name
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/uri
! the certificate is known when the endpoint shows it
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: backend-certificate-name
  explain: HTTPRoute shop/shop gets it, on 1 endpoint

== status
backendtlspolicy shop/listed
  ancestors:
    ancestorRef:
      kind: Gateway
      namespace: shop
    Accepted=True
    ResolvedRefs=True
backendtlspolicy shop/other
  ancestors:
    ancestorRef:
      kind: Gateway
      namespace: shop
    Accepted=True
    ResolvedRefs=True
backendtlspolicy shop/uri
  ancestors:
    ancestorRef:
      kind: Gateway
      namespace: shop
    Accepted=True
    ResolvedRefs=True
