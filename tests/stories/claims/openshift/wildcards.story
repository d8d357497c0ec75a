Every name of a domain
claims: Route.spec.wildcardPolicy, IngressController.spec.routeAdmission.wildcardPolicy, Specific hosts

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, routeAdmission: {wildcardPolicy: WildcardsAllowed}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: strict, namespace: openshift-ingress-operator}
spec:
  domain: strict.test
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: any, namespace: shop}
spec: {host: www.d.test, wildcardPolicy: Subdomain, to: {kind: Service, name: any}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: exact, namespace: shop}
spec: {host: exact.d.test, path: /exact, to: {kind: Service, name: exact}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: through, namespace: shop}
spec: {host: www.e.test, wildcardPolicy: Subdomain, to: {kind: Service, name: tls}, tls: {termination: passthrough}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: edge, namespace: shop}
spec:
  host: edge.e.test
  to: {kind: Service, name: exact}
  tls: {termination: edge, certificate: {{cert edge.e.test}}, key: {{key edge.e.test}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: wrong, namespace: shop}
spec: {wildcardPolicy: Subdomain, to: {kind: Service, name: any}}

== backends
any: http for=shop/any
exact: http for=shop/exact
tls: https "cert=*.e.test" for=shop/tls:443

== requests
$ curl http://www.d.test/
  HTTP/1.1 200 OK
  any saw GET / HTTP/1.1
  explain: Route shop/any gets it, on 1 endpoint
$ curl http://other.d.test/
  HTTP/1.1 200 OK
  any saw GET / HTTP/1.1
  explain: Route shop/any gets it, on 1 endpoint
$ curl http://a.b.d.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: no route of router default has a.b.d.test
    fix: create a Route with host a.b.d.test
$ curl http://d.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: no route of router default has d.test
    fix: create a Route with host d.test
$ curl http://exact.d.test/exact
  HTTP/1.1 200 OK
  exact saw GET /exact HTTP/1.1
  explain: Route shop/exact gets it, on 1 endpoint
# What the paths of the exact host do not match goes on to the wildcard.
$ curl http://exact.d.test/
  HTTP/1.1 200 OK
  any saw GET / HTTP/1.1
  explain: Route shop/any gets it, on 1 endpoint
# An exact host that terminates is stronger than a wildcard that passes through.
$ curl https://edge.e.test/
  HTTP/2 200
  exact saw GET / HTTP/1.1
  explain: Route shop/edge gets it, on 1 endpoint
$ curl https://other.e.test/
  HTTP/1.1 200 OK
  tls saw GET / HTTP/1.1
    [tls TLSv1_3, SNI other.e.test, ALPN http/1.1]
  explain: Route shop/through gets the TLS stream as it is, on 1 endpoint
# The other router allows no wildcards.
$ curl http://www.d.test:8080/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: Route shop/any claims it and is not served: RouteNotAdmitted: wildcard routes are not allowed
    fix: set spec.routeAdmission.wildcardPolicy of IngressController strict to WildcardsAllowed, or the route's wildcardPolicy to None
$ curl http://exact.d.test:8080/exact
  HTTP/1.1 200 OK
  exact saw GET /exact HTTP/1.1
  explain: Route shop/exact gets it, on 1 endpoint

== status
route shop/any
  ingress: default
    Admitted=True
    host: www.d.test
    wildcardPolicy: Subdomain
  ingress: strict
    Admitted=False RouteNotAdmitted: wildcard routes are not allowed
    host: www.d.test
    wildcardPolicy: Subdomain
route shop/exact
  ingress: default
    Admitted=True
    host: exact.d.test
    wildcardPolicy: None
  ingress: strict
    Admitted=True
    host: exact.d.test
    wildcardPolicy: None
route shop/wrong
  ingress: default
    Admitted=False InvalidManifest: story.yaml:39: spec.host: Required value: wildcardPolicy Subdomain needs a host, such as www.example.test
    host:
    wildcardPolicy: Subdomain
  ingress: strict
    Admitted=False InvalidManifest: story.yaml:39: spec.host: Required value: wildcardPolicy Subdomain needs a host, such as www.example.test
    host:
    wildcardPolicy: Subdomain

== validate
  warning: Route shop/any: router strict refuses it: RouteNotAdmitted: wildcard routes are not allowed
  warning: Route shop/through: router strict refuses it: RouteNotAdmitted: wildcard routes are not allowed
  Route shop/wrong: spec.host: Required value: wildcardPolicy Subdomain needs a host, such as www.example.test
