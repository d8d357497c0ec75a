Clients with certificates
claims: IngressController.spec.clientTLS.clientCertificatePolicy, IngressController.spec.clientTLS.clientCA.name, IngressController.spec.clientTLS.allowedSubjectPatterns
seen: x-ssl-client-cn

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec:
  domain: apps.test
  clientTLS: {clientCertificatePolicy: Required, clientCA: {name: clients}, allowedSubjectPatterns: ["CN=al"]}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: optional, namespace: openshift-ingress-operator}
spec:
  domain: optional.test
  clientTLS: {clientCertificatePolicy: Optional, clientCA: {name: clients}}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: missing, namespace: openshift-ingress-operator}
spec:
  domain: missing.test
  clientTLS: {clientCertificatePolicy: Required, clientCA: {name: gone}}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 9080, httpsPort: 9443}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: clients, namespace: openshift-config}
data: {ca-bundle.pem: {{ca clients}}}
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
$ curl --cert "{{cert alice by clients}}" --key "{{key alice by clients}}" https://shop.test/
  HTTP/2 200
  one saw GET / HTTP/1.1
    x-ssl-client-cn: alice
  explain: Route shop/shop gets it, on 1 endpoint, for clients that show a certificate
# What a client says of itself is taken out.
$ curl --cert "{{cert alice by clients}}" --key "{{key alice by clients}}" -H 'X-SSL-Client-CN: root' https://shop.test/
  HTTP/2 200
  one saw GET / HTTP/1.1
    x-ssl-client-cn: alice
  explain: Route shop/shop gets it, on 1 endpoint, for clients that show a certificate
# Another subject, another CA, none.
$ curl --cert "{{cert bob by clients}}" --key "{{key bob by clients}}" https://shop.test/
! the client's certificate is no part of a question
  HTTP/2 403
    x-sluice-cause: client-certificate
  explain: Route shop/shop gets it, on 1 endpoint, for clients that show a certificate
$ curl --cert "{{cert alice by others}}" --key "{{key alice by others}}" https://shop.test/
  the connection ends without an answer
  explain: Route shop/shop gets it, on 1 endpoint, for clients that show a certificate
$ curl https://shop.test/
  the connection ends without an answer
  explain: Route shop/shop gets it, on 1 endpoint, for clients that show a certificate

$ curl https://shop.test:8443/
  HTTP/2 200
  one saw GET / HTTP/1.1
  explain: Route shop/shop gets it, on 1 endpoint
$ curl --cert "{{cert bob by clients}}" --key "{{key bob by clients}}" https://shop.test:8443/
  HTTP/2 200
  one saw GET / HTTP/1.1
    x-ssl-client-cn: bob
  explain: Route shop/shop gets it, on 1 endpoint
$ curl --cert "{{cert alice by others}}" --key "{{key alice by others}}" https://shop.test:8443/
! the client's certificate is no part of a question
  the connection ends without an answer
  explain: Route shop/shop gets it, on 1 endpoint

# Without its CA a router that wants certificates serves nobody.
$ curl --cert "{{cert alice by clients}}" --key "{{key alice by clients}}" https://shop.test:9443/
  no TLS: alert internal error
  explain: TLS of router missing is refused: its clientTLS has no CA that can be used
    fix: correct spec.clientTLS.clientCA of IngressController missing

== status
ingresscontroller openshift-ingress-operator/default
  domain: apps.test
  Admitted=True Valid
  Available=True
  Degraded=False
ingresscontroller openshift-ingress-operator/missing
  domain: missing.test
  Admitted=True Valid
  Available=False ClientCAUnusable: ConfigMap "gone" of spec.clientTLS.clientCA is not in openshift-config; until it is there TLS is refused
  Degraded=True ClientCAUnusable: ConfigMap "gone" of spec.clientTLS.clientCA is not in openshift-config; until it is there TLS is refused
