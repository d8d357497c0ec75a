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
  explain: Route shop/shop gets it, on 1 endpoint
# What a client says of itself is taken out.
$ curl --cert "{{cert alice by clients}}" --key "{{key alice by clients}}" -H 'X-SSL-Client-CN: root' https://shop.test/
  HTTP/2 200
  one saw GET / HTTP/1.1
    x-ssl-client-cn: alice
  explain: Route shop/shop gets it, on 1 endpoint
# Another subject, another CA, none.
$ curl --cert "{{cert bob by clients}}" --key "{{key bob by clients}}" https://shop.test/
! the client's certificate is no part of a question
  HTTP/2 403
    x-sluice-cause: client-certificate
  explain: Route shop/shop gets it, on 1 endpoint
$ curl --cert "{{cert alice by others}}" --key "{{key alice by others}}" https://shop.test/
! the client's certificate is no part of a question
  the connection ends without an answer
  explain: Route shop/shop gets it, on 1 endpoint
$ curl https://shop.test/
! the client's certificate is no part of a question
  the connection ends without an answer
  explain: Route shop/shop gets it, on 1 endpoint

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
  explain: Route shop/shop gets it, on 1 endpoint

== status
ingresscontroller openshift-ingress-operator/default
  Admitted=True Valid
  Available=True
  Degraded=False
  domain: apps.test
  endpointPublishingStrategy:
    type: HostNetwork
    hostNetwork:
      httpPort: 80
      httpsPort: 443
  routeAdmission:
    namespaceOwnership: Strict
    wildcardPolicy: WildcardsDisallowed
ingresscontroller openshift-ingress-operator/missing
  Admitted=True Valid
  Available=False ClientCAUnusable: ConfigMap "gone" of spec.clientTLS.clientCA is not in openshift-config; until it is there TLS is refused
  Degraded=True ClientCAUnusable: ConfigMap "gone" of spec.clientTLS.clientCA is not in openshift-config; until it is there TLS is refused
  domain: missing.test
  endpointPublishingStrategy:
    type: HostNetwork
    hostNetwork:
      httpPort: 9080
      httpsPort: 9443
  routeAdmission:
    namespaceOwnership: Strict
    wildcardPolicy: WildcardsDisallowed
