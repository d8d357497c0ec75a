What a TLSRoute is told of its backends' TLS depends on whether its listener ends that of clients
router: none

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: passed, port: 443, protocol: TLS, hostname: passed.test, tls: {mode: Passthrough}}
  - {name: ended, port: 443, protocol: TLS, hostname: ended.test, tls: {mode: Terminate, certificateRefs: [{name: own}]}}
---
apiVersion: v1
kind: Secret
metadata: {name: own, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert ended.test}}, tls.key: {{key ended.test}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: both, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [passed.test, ended.test]
  rules: [{backendRefs: [{name: web, port: 443}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: web, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: web}]
  validation: {hostname: web.test, caCertificateRefs: [{group: "", kind: ConfigMap, name: missing}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: once, namespace: shop}
spec:
  parentRefs: [{name: public, sectionName: ended}]
  hostnames: [ended.test]
  rules: [{backendRefs: [{name: web, port: 443}]}]

== backends
one: bytes for=shop/web:443

== requests
$ openssl s_client -servername passed.test
$ openssl s_client -servername ended.test
