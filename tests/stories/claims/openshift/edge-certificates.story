Certificates of Routes
claims: Route.spec.tls.certificate, Route.spec.tls.key, Route.spec.tls.caCertificate, Broken certificates

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: own, namespace: shop}
spec:
  host: own.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert own.apps.test}}, key: {{key own.apps.test}}, caCertificate: {{ca}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: other-name, namespace: shop}
spec:
  host: name.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert other.apps.test}}, key: {{key other.apps.test}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: other-ca, namespace: shop}
spec:
  host: ca.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert ca.apps.test}}, key: {{key ca.apps.test}}, caCertificate: {{ca other}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: broken, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  host: broken.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert broken.apps.test}}, key: {{key own.apps.test}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: younger, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {host: broken.apps.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: key-alone, namespace: shop}
spec:
  host: key.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, key: {{key own.apps.test}}}

== backends
one: http for=shop/web

== requests
$ curl https://own.apps.test/
  HTTP/2 200
  one saw GET / HTTP/1.1
  explain: Route shop/own gets it, on 1 endpoint
$ openssl s_client -servername own.apps.test -alpn h2
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = own.apps.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for own.apps.test ends here; the path decides which route gets a request
$ curl https://name.apps.test/
! the client does not like the certificate
  the client refuses the certificate: no alternative certificate subject name matches target host name 'name.apps.test'
  explain: Route shop/other-name gets it, on 1 endpoint
$ curl --insecure https://name.apps.test/
  HTTP/2 200
  one saw GET / HTTP/1.1
  explain: Route shop/other-name gets it, on 1 endpoint
$ curl --insecure https://ca.apps.test/
  HTTP/2 503
    x-sluice-cause: no-route
  explain: 503: Route shop/other-ca claims it and is not served: ExtendedValidationFailed: spec.tls.caCertificate: Invalid value: (redacted): did not sign the certificate; paste the CA that did
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl --insecure https://broken.apps.test/
  HTTP/2 503
    x-sluice-cause: no-route
  explain: 503: Route shop/broken claims it and is not served: ExtendedValidationFailed: spec.tls.key: Invalid value: (redacted): does not belong to the certificate; the leaf must stand first, with its own key
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://broken.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: Route shop/broken claims it and is not served: ExtendedValidationFailed: spec.tls.key: Invalid value: (redacted): does not belong to the certificate; the leaf must stand first, with its own key
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl --insecure https://key.apps.test/
  HTTP/2 200
  one saw GET / HTTP/1.1
  explain: Route shop/key-alone gets it, on 1 endpoint

== status
route shop/own
  ingress: default
    Admitted=True
    host: own.apps.test
    wildcardPolicy: None
route shop/other-name
  ingress: default
    Admitted=True
    host: name.apps.test
    wildcardPolicy: None
route shop/other-ca
  ingress: default
    Admitted=False ExtendedValidationFailed: spec.tls.caCertificate: Invalid value: (redacted): did not sign the certificate; paste the CA that did
    host: ca.apps.test
    wildcardPolicy: None
route shop/broken
  ingress: default
    Admitted=False ExtendedValidationFailed: spec.tls.key: Invalid value: (redacted): does not belong to the certificate; the leaf must stand first, with its own key
    host: broken.apps.test
    wildcardPolicy: None
route shop/younger
  ingress: default
    Admitted=False HostAlreadyClaimed: route broken already exposes broken.apps.test and is older
    host: broken.apps.test
    wildcardPolicy: None

== validate
  warning: Route shop/other-name: spec.tls.certificate: the certificate is made out for other.apps.test and not for name.apps.test, so clients refuse it; use one with that name (subjectAltName), or another host
  Route shop/other-ca: spec.tls.caCertificate: Invalid value: (redacted): did not sign the certificate; paste the CA that did
  Route shop/broken: spec.tls.key: Invalid value: (redacted): does not belong to the certificate; the leaf must stand first, with its own key
  warning: Route shop/younger: router default refuses it: HostAlreadyClaimed: route broken already exposes broken.apps.test and is older
  warning: Route shop/key-alone: spec.tls.key: is not used without a certificate; write certificate, or remove it
