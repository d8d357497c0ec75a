Versions and suites of TLS
claims: IngressController.spec.tlsSecurityProfile.type, IngressController.spec.tlsSecurityProfile.custom.minTLSVersion, IngressController.spec.tlsSecurityProfile.custom.ciphers, IngressController.spec.tlsSecurityProfile.old, IngressController.spec.tlsSecurityProfile.intermediate, IngressController.spec.tlsSecurityProfile.modern

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, tlsSecurityProfile: {type: Intermediate, intermediate: {}}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: modern, namespace: openshift-ingress-operator}
spec:
  domain: modern.test
  tlsSecurityProfile: {type: Modern, modern: {}}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: old, namespace: openshift-ingress-operator}
spec:
  domain: old.test
  tlsSecurityProfile: {type: Old, old: {}}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 9080, httpsPort: 9443}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: custom, namespace: openshift-ingress-operator}
spec:
  domain: custom.test
  tlsSecurityProfile:
    type: Custom
    custom:
      minTLSVersion: VersionTLS12
      ciphers: [ECDHE-ECDSA-AES256-GCM-SHA384, DHE-RSA-AES128-GCM-SHA256]
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 10080, httpsPort: 10443}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: nothing, namespace: openshift-ingress-operator}
spec:
  domain: nothing.test
  tlsSecurityProfile: {type: Custom, custom: {minTLSVersion: VersionTLS12, ciphers: [DES-CBC3-SHA]}}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 11080, httpsPort: 11443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec:
  host: shop.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert shop.test}}, key: {{key shop.test}}}

== backends
one: http for=shop/web

== requests
$ openssl s_client -servername shop.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = shop.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for shop.test ends here; the path decides which route gets a request
$ openssl s_client -servername shop.test -tls1_2
  Protocol version: TLSv1.2
  Ciphersuite: ECDHE-ECDSA-AES128-GCM-SHA256
  Peer certificate: CN = shop.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for shop.test ends here; the path decides which route gets a request
$ openssl s_client -servername shop.test -tls1_1 -cipher ALL:@SECLEVEL=0
! what a client offers is no part of a question
  no TLS: alert 40
  explain: TLS for shop.test ends here; the path decides which route gets a request
# Modern: TLS 1.3 alone.
$ openssl s_client -connect 10.0.0.1:8443 -servername shop.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = shop.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for shop.test ends here; the path decides which route gets a request
$ openssl s_client -connect 10.0.0.1:8443 -servername shop.test -tls1_2
! what a client offers is no part of a question
  no TLS: alert 70
  explain: TLS for shop.test ends here; the path decides which route gets a request
# Old: what rustls does not have is not offered, and named below.
$ openssl s_client -connect 10.0.0.1:9443 -servername shop.test -tls1_2
  Protocol version: TLSv1.2
  Ciphersuite: ECDHE-ECDSA-AES128-GCM-SHA256
  Peer certificate: CN = shop.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for shop.test ends here; the path decides which route gets a request
$ openssl s_client -connect 10.0.0.1:9443 -servername shop.test -tls1_1 -cipher ALL:@SECLEVEL=0
! what a client offers is no part of a question
  no TLS: alert 40
  explain: TLS for shop.test ends here; the path decides which route gets a request
# Custom: one suite of TLS 1.2 and, as none is written, none of 1.3.
$ openssl s_client -connect 10.0.0.1:10443 -servername shop.test -tls1_2
  Protocol version: TLSv1.2
  Ciphersuite: ECDHE-ECDSA-AES256-GCM-SHA384
  Peer certificate: CN = shop.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for shop.test ends here; the path decides which route gets a request
$ openssl s_client -connect 10.0.0.1:10443 -servername shop.test -tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256
! what a client offers is no part of a question
  no TLS: alert 40
  explain: TLS for shop.test ends here; the path decides which route gets a request
$ openssl s_client -connect 10.0.0.1:10443 -servername shop.test -tls1_3
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = shop.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for shop.test ends here; the path decides which route gets a request
$ curl https://shop.test:11443/
  no TLS: alert internal error
  explain: TLS of router nothing is refused: its tlsSecurityProfile names no cipher suite that can be used
    fix: correct spec.tlsSecurityProfile of IngressController nothing

== status
ingresscontroller openshift-ingress-operator/default
  domain: apps.test
  Admitted=True Valid
  Available=True
  Degraded=False
ingresscontroller openshift-ingress-operator/old
  domain: old.test
  Admitted=True Valid
  Available=True
  Degraded=True TLSProfileReduced: spec.tlsSecurityProfile: not offered, as they are not safe any more or not in the TLS library: DHE-RSA-AES128-GCM-SHA256, DHE-RSA-AES256-GCM-SHA384, DHE-RSA-CHACHA20-POLY1305, ECDHE-ECDSA-AES128-SHA256, ECDHE-RSA-AES128-SHA256, ECDHE-ECDSA-AES128-SHA, ECDHE-RSA-AES128-SHA, ECDHE-ECDSA-AES256-SHA384, ECDHE-RSA-AES256-SHA384, ECDHE-ECDSA-AES256-SHA, ECDHE-RSA-AES256-SHA, DHE-RSA-AES128-SHA256, DHE-RSA-AES256-SHA256, AES128-GCM-SHA256, AES256-GCM-SHA384, AES128-SHA256, AES256-SHA256, AES128-SHA, AES256-SHA, DES-CBC3-SHA, VersionTLS10, VersionTLS11
ingresscontroller openshift-ingress-operator/custom
  domain: custom.test
  Admitted=True Valid
  Available=True
  Degraded=True TLSProfileReduced: spec.tlsSecurityProfile: not offered, as they are not safe any more or not in the TLS library: DHE-RSA-AES128-GCM-SHA256
ingresscontroller openshift-ingress-operator/nothing
  domain: nothing.test
  Admitted=True Valid
  Available=False TLSProfileUnusable: spec.tlsSecurityProfile: no cipher suite of the TLS profile is available; name at least one of TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256, ECDHE-ECDSA-AES128-GCM-SHA256, ECDHE-RSA-AES128-GCM-SHA256, ECDHE-ECDSA-AES256-GCM-SHA384, ECDHE-RSA-AES256-GCM-SHA384, ECDHE-ECDSA-CHACHA20-POLY1305, ECDHE-RSA-CHACHA20-POLY1305; until then TLS is refused
  Degraded=True TLSProfileUnusable: spec.tlsSecurityProfile: no cipher suite of the TLS profile is available; name at least one of TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256, ECDHE-ECDSA-AES128-GCM-SHA256, ECDHE-RSA-AES128-GCM-SHA256, ECDHE-ECDSA-AES256-GCM-SHA384, ECDHE-RSA-AES256-GCM-SHA384, ECDHE-ECDSA-CHACHA20-POLY1305, ECDHE-RSA-CHACHA20-POLY1305; until then TLS is refused
