Who gets a host
claims: Oldest first, Namespaces, Passthrough, IngressController.spec.routeAdmission.namespaceOwnership

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: shared, namespace: openshift-ingress-operator}
spec:
  domain: shared.test
  routeAdmission: {namespaceOwnership: InterNamespaceAllowed}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: younger, namespace: shop, creationTimestamp: "2025-02-01T00:00:00Z"}
spec: {host: shop.test, to: {kind: Service, name: younger}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: foreign, namespace: blog, creationTimestamp: "2025-03-01T00:00:00Z"}
spec: {host: shop.test, path: /blog, to: {kind: Service, name: foreign}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: edge, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"}
spec: {host: tls.test, to: {kind: Service, name: older}, tls: {termination: edge}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: through, namespace: shop, creationTimestamp: "2025-02-01T00:00:00Z"}
spec: {host: tls.test, to: {kind: Service, name: older}, tls: {termination: passthrough}}

== manifests older
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: older, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"}
spec: {host: shop.test, to: {kind: Service, name: older}}

== manifests later older
# Nothing any more.

== backends
older: http for=shop/older
younger: http for=shop/younger
foreign: http for=blog/foreign

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  older saw GET / HTTP/1.1
  explain: Route shop/older gets it, on 1 endpoint
$ curl http://shop.test/blog
  HTTP/1.1 200 OK
  older saw GET /blog HTTP/1.1
  explain: Route shop/older gets it, on 1 endpoint
$ curl http://shop.test:8080/blog
  HTTP/1.1 200 OK
  foreign saw GET /blog HTTP/1.1
  explain: Route blog/foreign gets it, on 1 endpoint
$ curl --insecure https://tls.test/
  HTTP/2 200
  older saw GET / HTTP/1.1
  explain: Route shop/edge gets it, on 1 endpoint

== status
route shop/older
  ingress: default
    Admitted=True
    host: shop.test
    wildcardPolicy: None
  ingress: shared
    Admitted=True
    host: shop.test
    wildcardPolicy: None
route shop/younger
  ingress: default
    Admitted=False HostAlreadyClaimed: route older already exposes shop.test and is older
    host: shop.test
    wildcardPolicy: None
  ingress: shared
    Admitted=False HostAlreadyClaimed: route older already exposes shop.test and is older
    host: shop.test
    wildcardPolicy: None
route blog/foreign
  ingress: default
    Admitted=False HostAlreadyClaimed: a route in another namespace holds shop.test and is older than foreign
    host: shop.test
    wildcardPolicy: None
  ingress: shared
    Admitted=True
    host: shop.test
    wildcardPolicy: None
route shop/through
  ingress: default
    Admitted=False HostAlreadyClaimed: route edge already exposes tls.test and is older
    host: tls.test
    wildcardPolicy: None
  ingress: shared
    Admitted=False HostAlreadyClaimed: route edge already exposes tls.test and is older
    host: tls.test
    wildcardPolicy: None

== requests
# The oldest goes, and the next one has the host.
$ apply older
$ curl http://shop.test/
  HTTP/1.1 200 OK
  younger saw GET / HTTP/1.1
  explain: Route shop/younger gets it, on 1 endpoint

== status
route shop/younger
  ingress: default
    Admitted=True
    host: shop.test
    wildcardPolicy: None
  ingress: shared
    Admitted=True
    host: shop.test
    wildcardPolicy: None
