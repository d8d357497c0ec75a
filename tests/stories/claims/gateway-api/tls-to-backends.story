TLS to backends is verified by the policy's hostname
claims: TLS to backends, BackendTLSPolicy

All backends show a certificate for app.internal.

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
  - matches: [{path: {value: /broken}}]
    backendRefs: [{name: broken, port: 80}]
  - backendRefs: [{name: usual, port: 80}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ca, namespace: shop}
data: {ca.crt: {{ca inside}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: usual, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  targetRefs: [{group: "", kind: Service, name: usual}]
  validation: {hostname: app.internal, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: late, namespace: shop, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  targetRefs: [{group: "", kind: Service, name: usual}]
  validation: {hostname: late.internal, wellKnownCACertificates: System}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: other, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: other}]
  validation: {hostname: other.internal, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: broken, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: broken}]
  validation: {hostname: app.internal, caCertificateRefs: [{group: "", kind: ConfigMap, name: none}]}

== backends
usual: h2 for=shop/usual "cert=app.internal by inside"
other: h2 for=shop/other "cert=app.internal by inside"
broken: h2 for=shop/broken "cert=app.internal by inside"

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  usual saw GET / HTTP/2
    [tls TLSv1_3, SNI app.internal, ALPN h2]
  explain: HTTPRoute shop/shop gets it, on 1 endpoint

# The certificate is for another name.
$ curl http://shop.test/other
! the certificate is known when the endpoint shows it
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: backend-certificate-name
  explain: HTTPRoute shop/shop gets it, on 1 endpoint

# There is nothing to verify it with, so nothing is sent.
$ curl http://shop.test/broken
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: look at the status of HTTPRoute shop/shop and of the policies for its backends, and at the rule's backends

== status
httproute shop/shop
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
backendtlspolicy shop/usual
  ancestors:
    ancestorRef:
      kind: Gateway
      namespace: shop
    Accepted=True
    ResolvedRefs=True
backendtlspolicy shop/late
  ancestors:
    ancestorRef:
      kind: Gateway
      namespace: shop
    Accepted=False Conflicted: spec.targetRefs: Service usual has the older policy usual
    ResolvedRefs=True
backendtlspolicy shop/other
  ancestors:
    ancestorRef:
      kind: Gateway
      namespace: shop
    Accepted=True
    ResolvedRefs=True
backendtlspolicy shop/broken
  ancestors:
    ancestorRef:
      kind: Gateway
      namespace: shop
    Accepted=False NoValidCACertificate: spec.validation.caCertificateRefs: none of them can be used, so requests are answered 5xx
    ResolvedRefs=False InvalidCACertificateRef: spec.validation.caCertificateRefs[0]: there is no ConfigMap none; create it, or write another
