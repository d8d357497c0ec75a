Pages in the place of the router's own
claims: IngressController.spec.httpErrorCodePages.name
answer: body, content-type, x-page

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, httpErrorCodePages: {name: pages}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pages, namespace: openshift-config}
data:
  error-page-503.http: |
    HTTP/1.0 503 Service Unavailable
    Content-Type: text/html
    X-Page: 1

    <p>Nobody is here.
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: missing, namespace: openshift-ingress-operator}
spec:
  domain: missing.test
  httpErrorCodePages: {name: gone}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== requests
$ curl http://nobody.test/
  HTTP/1.1 503 Service Unavailable
    content-type: text/html
    x-page: 1
    x-sluice-cause: no-route
    | <p>Nobody is here.
  explain: 503: no route of router default has nobody.test
    fix: create a Route with host nobody.test
$ curl http://shop.test/
  HTTP/1.1 503 Service Unavailable
    content-type: text/html
    x-page: 1
    x-sluice-cause: no-endpoints
    | <p>Nobody is here.
  explain: 503: Route shop/shop has it, but no service of it has a usable endpoint
    fix: Service shop/web does not exist; create it, or name another

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
  Degraded=True ErrorPagesUnusable: ConfigMap "gone" of spec.httpErrorCodePages is not in openshift-config; the router's own pages are sent
