Where listeners live, and what a parent's port means
claims: Ports, GatewayPort8080, HTTPRouteParentRefPort, GatewayAddressEmpty, Gateway, HTTPRoute

The IngressController has 80 and 443; what it does not have becomes a router of one port.

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  addresses: [{type: IPAddress}]
  listeners:
  - {name: web, port: 80, protocol: HTTP, hostname: "*.shop.test"}
  - {name: high, port: 8080, protocol: HTTP, hostname: "*.shop.test"}
  - {name: odd, port: 443, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: elsewhere, namespace: shop}
spec:
  gatewayClassName: sluice
  addresses: [{type: IPAddress, value: 203.0.113.5}]
  listeners: [{name: web, port: 8081, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: both, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [both.shop.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: high, namespace: shop}
spec:
  parentRefs: [{name: public, port: 8080}]
  hostnames: [high.shop.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: none, namespace: shop}
spec:
  parentRefs: [{name: public, sectionName: high, port: 80}, {name: public, sectionName: odd, port: 443}, {name: elsewhere}]
  hostnames: [none.shop.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]

== backends
web: http for=shop/web

== requests
$ curl http://both.shop.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/both gets it, on 1 endpoint
$ curl http://both.shop.test:8080/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/both gets it, on 1 endpoint
$ curl http://high.shop.test:8080/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/high gets it, on 1 endpoint
$ curl http://high.shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has *.shop.test, and no route with it is attached there
    fix: give a route on Gateway shop/public#web a rule that matches /
$ curl http://none.shop.test:8080/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#high has *.shop.test, and no route with it is attached there
    fix: give a route on Gateway shop/public#high a rule that matches /
$ curl http://none.shop.test:8081/
  no connection
  explain: no router listens on port 8081 for http
    fix: ask on port 80 or 8080 for http
$ sluice get routes
  KIND        NAMESPACE   NAME   PARENT                     HOST             PATH   TERMINATION   STATE      REASON
  HTTPRoute   shop        both   Gateway shop/public        both.shop.test   -      -             admitted   Accepted
  HTTPRoute   shop        high   Gateway shop/public        high.shop.test   -      -             admitted   Accepted
  HTTPRoute   shop        none   Gateway shop/public#high   none.shop.test   -      -             rejected   NoMatchingParent
  HTTPRoute   shop        none   Gateway shop/public#odd    none.shop.test   -      -             rejected   NoReadyListeners
  HTTPRoute   shop        none   Gateway shop/elsewhere     none.shop.test   -      -             rejected   NoReadyListeners

== status
gateway shop/public
  Accepted=True ListenersNotValid: listeners are not accepted: odd
  Programmed=True
  ResolvedRefs=True
  listeners: web
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
  listeners: high
    attachedRoutes: 2
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
  listeners: odd
    attachedRoutes: 1
    Accepted=False PortUnavailable: port 443 of router default speaks TLS; choose another port
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the listener is not accepted
gateway shop/elsewhere
  Accepted=False UnsupportedAddress: spec.addresses: not addresses of this router: IPAddress 203.0.113.5; it has 10.0.0.1, 10.1.0.1, 192.0.2.1, 192.0.2.2, 198.51.100.7, 2001:db8::1, fd00::1
  Programmed=False Invalid: no listener takes traffic
  ResolvedRefs=True
  listeners: web
    attachedRoutes: 0
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the Gateway is not accepted
httproute shop/both
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
httproute shop/high
  parents:
    Gateway public:8080
    Accepted=True
    ResolvedRefs=True
httproute shop/none
  parents:
    Gateway public#high:80
    Accepted=False NoMatchingParent: Gateway shop/public has no listener named high on port 80
    ResolvedRefs=True
  parents:
    Gateway public#odd:443
    Accepted=False NoReadyListeners: no listener that takes the route is accepted itself: odd
    ResolvedRefs=True
  parents:
    Gateway elsewhere
    Accepted=False NoReadyListeners: Gateway shop/elsewhere is not accepted: spec.addresses: not addresses of this router: IPAddress 203.0.113.5; it has 10.0.0.1, 10.1.0.1, 192.0.2.1, 192.0.2.2, 198.51.100.7, 2001:db8::1, fd00::1
    ResolvedRefs=True
