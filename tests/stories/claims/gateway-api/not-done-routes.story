TCPRoutes and UDPRoutes are not read
claims: TCPRoute, UDPRoute

What is beside them is.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: tcp, port: 9000, protocol: TCP}
  - {name: web, port: 80, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: tcp, namespace: shop}
spec:
  parentRefs: [{name: public, sectionName: tcp}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: UDPRoute
metadata: {name: udp, namespace: shop}
spec:
  parentRefs: [{name: public}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [{name: public}]
  rules: [{backendRefs: [{name: web, port: 80}]}]

== backends
web: http for=shop/web

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/web gets it, on 1 endpoint
$ send 9000
> hello
  no connection

== status
tcproute shop/tcp
  no status
udproute shop/udp
  no status
httproute shop/web
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
gateway shop/public
  Accepted=True ListenersNotValid: listeners are not accepted: tcp
  Programmed=True
  ResolvedRefs=True
  listeners: tcp
    attachedRoutes: 0
    Accepted=False UnsupportedProtocol: protocol "TCP" is not supported; write HTTP, HTTPS (mode Terminate) or TLS
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the listener is not accepted
  listeners: web
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True

== validate
  warning: Gateway shop/public: #tcp does not serve it: UnsupportedProtocol: protocol "TCP" is not supported; write HTTP, HTTPS (mode Terminate) or TLS
  warning: kind TCPRoute of gateway.networking.k8s.io/v1 is not read, ignored; TCP by port is not done; a TLSRoute is carried by its server name
  warning: kind UDPRoute of gateway.networking.k8s.io/v1alpha2 is not read, ignored; UDP is not done
