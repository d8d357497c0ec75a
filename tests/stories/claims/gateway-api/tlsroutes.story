Of several TLSRoutes one has a host
claims: TLSRoutes

A connection has nothing but its host: the most specific host serves, and then the oldest route.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: through, port: 443, protocol: TLS, hostname: "*.test", tls: {mode: Passthrough}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: wide, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: ["*.shop.test"]
  rules: [{backendRefs: [{name: wide, port: 443}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: exact, namespace: shop, creationTimestamp: "2025-02-01T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: [a.shop.test]
  rules: [{backendRefs: [{name: exact, port: 443}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: late, namespace: shop, creationTimestamp: "2025-03-01T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: [a.shop.test, c.test]
  rules: [{backendRefs: [{name: late, port: 443}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: broken, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [broken.test]
  rules: [{backendRefs: [{name: none, port: 443}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: elsewhere, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.example]
  rules: [{backendRefs: [{name: wide, port: 443}]}]

== backends
wide: https for=shop/wide:443 "cert=b.shop.test"
exact: https for=shop/exact:443 "cert=a.shop.test"
late: https for=shop/late:443 "cert=a.shop.test c.test"

== requests
$ curl https://a.shop.test/
  HTTP/1.1 200 OK
  exact saw GET / HTTP/1.1
    [tls TLSv1_3, SNI a.shop.test, ALPN http/1.1]
  explain: TLSRoute shop/exact gets the TLS stream as it is, on 1 endpoint
$ curl https://b.shop.test/
  HTTP/1.1 200 OK
  wide saw GET / HTTP/1.1
    [tls TLSv1_3, SNI b.shop.test, ALPN http/1.1]
  explain: TLSRoute shop/wide gets the TLS stream as it is, on 1 endpoint
$ curl https://c.test/
  HTTP/1.1 200 OK
  late saw GET / HTTP/1.1
    [tls TLSv1_3, SNI c.test, ALPN http/1.1]
  explain: TLSRoute shop/late gets the TLS stream as it is, on 1 endpoint
# No TLSRoute has it.
$ curl --insecure https://nobody.test/
  no TLS: the connection ends in the handshake
  explain: the connection is reset: Gateway shop/public has *.test, and no TLSRoute is attached for it
    fix: attach a TLSRoute with this host to Gateway shop/public
$ curl --insecure https://broken.test/
  no TLS: the connection ends in the handshake
  explain: the connection is reset: TLSRoute shop/broken has it, but no service of it has a usable endpoint
    fix: cannot be used, its share is answered 500: ResolvedRefs: BackendNotFound: rule 0: Service shop/none, port 443: there is no such Service
# Not of the listener's hostname.
$ curl --insecure https://shop.example/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: TLSRoute shop/elsewhere claims it and is not served: Gateway shop/public: NoMatchingListenerHostname: hostnames shop.example do not intersect those of the listeners: *.test
    fix: correct the route as its condition says; `sluice validate` shows the place

== status
tlsroute shop/wide
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
tlsroute shop/exact
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
tlsroute shop/late
  parents:
    Gateway public
    Accepted=True: connections for a.shop.test go to another TLSRoute, which takes precedence
    ResolvedRefs=True
tlsroute shop/broken
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=False BackendNotFound: rule 0: Service shop/none, port 443: there is no such Service
tlsroute shop/elsewhere
  parents:
    Gateway public
    Accepted=False NoMatchingListenerHostname: hostnames shop.example do not intersect those of the listeners: *.test
    ResolvedRefs=True
gateway shop/public
  Accepted=True
  Programmed=True
  ResolvedRefs=True
  listeners: through
    attachedRoutes: 4
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
