Of different kinds that want a host the oldest has it whole
claims: Other APIs' hosts

An exact host is stronger than a wildcard; a listener is as old as its Gateway for its own hostname only.

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test, routeAdmission: {wildcardPolicy: WildcardsAllowed}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: any, port: 80, protocol: HTTP}
  - {name: own, port: 80, protocol: HTTP, hostname: own.test}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: mixed, namespace: shop, creationTimestamp: "2025-03-01T00:00:00Z"}
spec:
  parentRefs: [{name: public, sectionName: any}]
  hostnames: [older.test, younger.test, "*.wild.test"]
  rules: [{backendRefs: [{name: gateway, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: lost, namespace: shop, creationTimestamp: "2025-03-01T00:00:00Z"}
spec:
  parentRefs: [{name: public, sectionName: any}]
  hostnames: [older.test]
  rules: [{matches: [{path: {value: /lost}}], backendRefs: [{name: gateway, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: shop, creationTimestamp: "2025-03-01T00:00:00Z"}
spec:
  parentRefs: [{name: public, sectionName: any}]
  rules: [{matches: [{path: {value: /all}}], backendRefs: [{name: gateway, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: own, namespace: shop, creationTimestamp: "2025-05-01T00:00:00Z"}
spec:
  parentRefs: [{name: public, sectionName: own}]
  rules: [{backendRefs: [{name: gateway, port: 80}]}]
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: older, namespace: blog, creationTimestamp: "2025-02-01T00:00:00Z"}
spec: {host: older.test, path: /blog, to: {kind: Service, name: route}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: younger, namespace: blog, creationTimestamp: "2025-04-01T00:00:00Z"}
spec: {host: younger.test, path: /blog, to: {kind: Service, name: route}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: exact, namespace: blog, creationTimestamp: "2025-04-01T00:00:00Z"}
spec: {host: exact.wild.test, to: {kind: Service, name: route}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: own, namespace: blog, creationTimestamp: "2025-04-01T00:00:00Z"}
spec: {host: own.test, to: {kind: Service, name: route}}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: middle, namespace: blog, creationTimestamp: "2025-02-15T00:00:00Z"}
spec:
  virtualhost: {fqdn: proxy.wild.test}
  routes: [{conditions: [{prefix: /proxy}], services: [{name: route, port: 80}]}]

== backends
gateway: http for=shop/gateway
route: http for=blog/route

== requests
$ curl http://older.test/blog
  HTTP/1.1 200 OK
  route saw GET /blog HTTP/1.1
  explain: Route blog/older gets it, on 1 endpoint
# The whole host is the Route's.
$ curl http://older.test/lost
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#any has *, and no rule takes /lost
    fix: give a route on Gateway shop/public#any a rule that matches /lost
# What its paths do not match goes on to wider hosts, of whatever kind.
$ curl http://older.test/all
  HTTP/1.1 200 OK
  gateway saw GET /all HTTP/1.1
  explain: HTTPRoute shop/all gets it, on 1 endpoint
# A host of rules is closed.
$ curl http://proxy.wild.test/all
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy blog/middle#proxy.wild.test has proxy.wild.test, and no rule takes /all
    fix: give a route on HTTPProxy blog/middle#proxy.wild.test a rule that matches /all
$ curl http://younger.test/all
  HTTP/1.1 200 OK
  gateway saw GET /all HTTP/1.1
  explain: HTTPRoute shop/mixed gets it, on 1 endpoint
$ curl http://younger.test/blog
  HTTP/1.1 200 OK
  gateway saw GET /blog HTTP/1.1
  explain: HTTPRoute shop/mixed gets it, on 1 endpoint
$ curl http://exact.wild.test/
  HTTP/1.1 200 OK
  route saw GET / HTTP/1.1
  explain: Route blog/exact gets it, on 1 endpoint
$ curl http://proxy.wild.test/proxy
  HTTP/1.1 200 OK
  route saw GET /proxy HTTP/1.1
  explain: HTTPProxy blog/middle gets it, on 1 endpoint
$ curl http://some.wild.test/
  HTTP/1.1 200 OK
  gateway saw GET / HTTP/1.1
  explain: HTTPRoute shop/mixed gets it, on 1 endpoint
$ curl http://own.test/
  HTTP/1.1 200 OK
  gateway saw GET / HTTP/1.1
  explain: HTTPRoute shop/own gets it, on 1 endpoint

== status
httproute shop/mixed
  parents:
    Gateway public#any
    Accepted=True: a Route in another namespace holds older.test and is older
    ResolvedRefs=True
httproute shop/lost
  parents:
    Gateway public#any
    Accepted=False HostAlreadyClaimed: a Route in another namespace holds older.test and is older than lost
    ResolvedRefs=True
httproute shop/own
  parents:
    Gateway public#own
    Accepted=True
    ResolvedRefs=True
gateway shop/public
  Accepted=True
  Programmed=True
  ResolvedRefs=True
  listeners: any
    attachedRoutes: 2
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
  listeners: own
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
route blog/older
  ingress: default
    Admitted=True
    host: older.test
    wildcardPolicy: None
route blog/younger
  ingress: default
    Admitted=False HostAlreadyClaimed: an HTTPRoute in another namespace holds younger.test and is older than younger
    host: younger.test
    wildcardPolicy: None
route blog/exact
  ingress: default
    Admitted=True
    host: exact.wild.test
    wildcardPolicy: None
route blog/own
  ingress: default
    Admitted=False HostAlreadyClaimed: a Gateway in another namespace holds own.test and is older than own
    host: own.test
    wildcardPolicy: None
httpproxy blog/middle
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
