What nobody serves
claims: No Route, Misdirected requests, IngressController.spec.defaultCertificate.name

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, defaultCertificate: {name: usual}}
---
apiVersion: v1
kind: Secret
metadata: {name: usual, namespace: openshift-ingress}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert *.apps.test}}, tls.key: {{key *.apps.test}}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: missing, namespace: openshift-ingress-operator}
spec:
  domain: missing.test
  defaultCertificate: {name: gone}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: default, namespace: shop}
spec: {host: default.apps.test, to: {kind: Service, name: web}, tls: {termination: edge}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: own, namespace: shop}
spec:
  host: own.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert own.apps.test}}, key: {{key own.apps.test}}}

== backends
one: http for=shop/web

== requests
$ curl http://nobody.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: no route of router default has nobody.apps.test
    fix: create a Route with host nobody.apps.test
# With the default certificate.
$ curl https://nobody.apps.test/
  HTTP/2 503
    x-sluice-cause: no-route
  explain: 503: no route of router default has nobody.apps.test
    fix: create a Route with host nobody.apps.test
$ curl https://default.apps.test/
  HTTP/2 200
  one saw GET / HTTP/1.1
  explain: Route shop/default gets it, on 1 endpoint
$ openssl s_client -servername default.apps.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = *.apps.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for default.apps.test ends here; the path decides which route gets a request
$ openssl s_client -servername nobody.apps.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = *.apps.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: the default certificate, and 503: no route of router default has nobody.apps.test
    fix: create a Route with host nobody.apps.test
# For a host with another certificate than the connection's.
$ curl -H 'Host: own.apps.test' https://default.apps.test/
  HTTP/2 421
    x-sluice-cause: misdirected
  explain: 421: own.apps.test needs another connection than that for default.apps.test
    fix: ask for https://own.apps.test
# No host at all, and an address.
$ send 80
> GET / HTTP/1.0
>
  HTTP/1.0 400 Bad Request
    x-sluice-cause: bad-request
  the connection ends
$ curl http://10.0.0.1/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: 10.0.0.1 is an address, and no route has every host
    fix: ask for the host name of a route

== status
ingresscontroller openshift-ingress-operator/default
  domain: apps.test
  Admitted=True Valid
  Available=True
  Degraded=False
ingresscontroller openshift-ingress-operator/missing
  domain: missing.test
  Admitted=True Valid
  Available=True
  Degraded=True DefaultCertificateUnusable: Secret "gone" of spec.defaultCertificate is neither in openshift-ingress nor in openshift-ingress-operator, or cannot be used; a generated certificate is served
