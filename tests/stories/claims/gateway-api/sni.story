Which certificate, and which host, a connection is for
claims: SNI, GatewayHTTPSListenerDetectMisdirectedRequests, Clear text

A request for a host of another listener than that of its SNI is answered 421.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 80, protocol: HTTP}
  - {name: any, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: any}]}}
  - {name: wild, port: 443, protocol: HTTPS, hostname: "*.wild.test", tls: {certificateRefs: [{name: wild}, {name: other}]}}
  - {name: own, port: 443, protocol: HTTPS, hostname: own.wild.test, tls: {certificateRefs: [{name: wild}]}}
---
apiVersion: v1
kind: Secret
metadata: {name: any, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert any.test}}, tls.key: {{key any.test}}}
---
apiVersion: v1
kind: Secret
metadata: {name: other, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert a.wild.test}}, tls.key: {{key a.wild.test}}}
---
apiVersion: v1
kind: Secret
metadata: {name: wild, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert *.wild.test}}, tls.key: {{key *.wild.test}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs: [{name: public}]
  rules: [{backendRefs: [{name: web, port: 80}]}]

== backends
web: http for=shop/web

== requests
# The name itself before a wildcard.
$ openssl s_client -servername a.wild.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = a.wild.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for a.wild.test ends here; the path decides which route gets a request
$ openssl s_client -servername b.wild.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = *.wild.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for b.wild.test ends here; the path decides which route gets a request
$ openssl s_client -servername any.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = any.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for any.test ends here; the path decides which route gets a request
# Without a name, and for an address: the listener without hostname.
$ openssl s_client -noservername
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = any.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
$ curl --insecure https://192.0.2.80/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://192.0.2.80/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl https://b.wild.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
# The listener of the SNI, and another host of it.
$ curl -H 'Host: c.wild.test' https://b.wild.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl -H 'Host: own.wild.test' https://b.wild.test/
  HTTP/2 421
    x-sluice-cause: misdirected
  explain: 421: own.wild.test needs another connection than that for b.wild.test
    fix: ask for https://own.wild.test
$ curl -H 'Host: any.test' https://b.wild.test/
  HTTP/2 421
    x-sluice-cause: misdirected
  explain: 421: any.test needs another connection than that for b.wild.test
    fix: ask for https://any.test
$ curl --http1.1 -H 'Host: b.wild.test' https://any.test/
  HTTP/1.1 421 Misdirected Request
    x-sluice-cause: misdirected
  explain: 421: b.wild.test needs another connection than that for any.test
    fix: ask for https://b.wild.test
# Clear text has no such name.
$ curl -H 'Host: b.wild.test' http://any.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl --http2-prior-knowledge http://any.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ send 80
> GET / HTTP/1.1
> Host: any.test
> Connection: Upgrade, HTTP2-Settings
> Upgrade: h2c
> HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA
>
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint

== status
gateway shop/public
  Accepted=True
  Programmed=True
  ResolvedRefs=True
  listeners: web
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
  listeners: any
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
    OverlappingTLSConfig=True OverlappingHostnames: clients may reuse connections between this listener and wild, own; requests that come by the wrong one are answered 421
  listeners: wild
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
    OverlappingTLSConfig=True OverlappingHostnames: clients may reuse connections between this listener and any, own; requests that come by the wrong one are answered 421
  listeners: own
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
    OverlappingTLSConfig=True OverlappingHostnames: clients may reuse connections between this listener and any, wild; requests that come by the wrong one are answered 421
