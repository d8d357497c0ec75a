HTTPS and TLS listeners share a port
claims: Hostnames on one port, TLSRouteModeMixed, TLSRouteModeTerminate, TLSRoute

They do as long as their hostnames differ. Where they do not, none of one Gateway has it, and of two Gateways the older.

== manifests
apiVersion: v1
kind: Secret
metadata: {name: pair, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert web.test ended.test twice.test}}, tls.key: {{key web.test ended.test twice.test}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: https, port: 443, protocol: HTTPS, hostname: web.test, tls: {certificateRefs: [{name: pair}]}}
  - {name: through, port: 443, protocol: TLS, hostname: through.test, tls: {mode: Passthrough}}
  - {name: ended, port: 443, protocol: TLS, hostname: ended.test, tls: {mode: Terminate, certificateRefs: [{name: pair}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: wrong, namespace: shop, creationTimestamp: "2025-01-02T00:00:00Z"}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: https, port: 443, protocol: HTTPS, hostname: mixed.test, tls: {certificateRefs: [{name: pair}]}}
  - {name: tls, port: 443, protocol: TLS, hostname: mixed.test, tls: {mode: Passthrough}}
  - {name: taken, port: 443, protocol: TLS, hostname: web.test, tls: {mode: Passthrough}}
  - {name: good, port: 443, protocol: TLS, hostname: good.test, tls: {mode: Passthrough}}
---
# No API server takes it, as one protocol has a hostname twice.
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: twice, namespace: shop, creationTimestamp: "2025-01-03T00:00:00Z"}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: one, port: 443, protocol: TLS, hostname: twice.test, tls: {mode: Passthrough}}
  - {name: two, port: 443, protocol: TLS, hostname: twice.test, tls: {mode: Terminate, certificateRefs: [{name: pair}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [{name: public}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: through, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [through.test]
  rules: [{backendRefs: [{name: tls, port: 443}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: ended, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [ended.test]
  rules: [{backendRefs: [{name: bytes, port: 7}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: wrong, namespace: shop}
spec:
  parentRefs: [{name: wrong}]
  hostnames: [mixed.test, web.test, good.test]
  rules: [{backendRefs: [{name: tls, port: 443}]}]

== backends
web: http for=shop/web
tls: https for=shop/tls:443 "cert=through.test good.test"
bytes: bytes for=shop/bytes:7

== requests
$ curl https://web.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/web gets it, on 1 endpoint
$ curl https://through.test/
  HTTP/1.1 200 OK
  tls saw GET / HTTP/1.1
    [tls TLSv1_3, SNI through.test, ALPN http/1.1]
  explain: TLSRoute shop/through gets the TLS stream as it is, on 1 endpoint
$ send 443 tls ended.test
> hello
  bytes/2
  bytes saw hello, and the answer is not its own
$ curl --insecure https://good.test/
  HTTP/1.1 200 OK
  tls saw GET / HTTP/1.1
    [tls TLSv1_3, SNI good.test, ALPN http/1.1]
  explain: TLSRoute shop/wrong gets the TLS stream as it is, on 1 endpoint
# Nobody has them.
$ curl --insecure https://twice.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: no object of router default has twice.test
    fix: create a Route with host twice.test
$ curl --insecure https://mixed.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: Gateway shop/wrong claims it and is not served: #https: ProtocolConflict: listeners tls have port 443 and hostname mixed.test as well; change one of them
    fix: correct Gateway shop/wrong as its condition says; `sluice validate` shows the place

== status
gateway shop/public
  Accepted=True
  Programmed=True
  ResolvedRefs=True
  listeners: https
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
  listeners: through
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
  listeners: ended
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
gateway shop/wrong
  Accepted=True ListenersNotValid: listeners are not accepted: https, tls, taken
  Programmed=True
  ResolvedRefs=True
  listeners: https
    attachedRoutes: 0
    Accepted=False ProtocolConflict: listeners tls have port 443 and hostname mixed.test as well; change one of them
    Conflicted=True ProtocolConflict: listeners tls have port 443 and hostname mixed.test as well; change one of them
    ResolvedRefs=True
    Programmed=False Invalid: the listener is not accepted
  listeners: tls
    attachedRoutes: 1
    Accepted=False ProtocolConflict: listeners https have port 443 and hostname mixed.test as well; change one of them
    Conflicted=True ProtocolConflict: listeners https have port 443 and hostname mixed.test as well; change one of them
    ResolvedRefs=True
    Programmed=False Invalid: the listener is not accepted
  listeners: taken
    attachedRoutes: 1
    Accepted=False PortUnavailable: port 443: Gateway public already exposes web.test and is older; choose another hostname or port
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the listener is not accepted
  listeners: good
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
gateway shop/twice
  Accepted=False Invalid: story.yaml:36: spec.listeners[1]: has the port, protocol and hostname of listener "one"; write another port or hostname, or remove it
tlsroute shop/through
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
tlsroute shop/ended
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
tlsroute shop/wrong
  parents:
    Gateway wrong
    Accepted=True
    ResolvedRefs=True
httproute shop/web
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
