The port of a Service says what its backend speaks
claims: Backend protocols, HTTPRouteBackendProtocolH2C, HTTPRouteBackendProtocolWebSocket
seen: upgrade

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 80, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.test]
  rules:
  - {matches: [{path: {value: /http}}], backendRefs: [{name: http, port: 80}]}
  - {matches: [{path: {value: /ws}}], backendRefs: [{name: ws, port: 80}]}
  - {matches: [{path: {value: /h2c}}], backendRefs: [{name: h2c, port: 80}]}
  - {matches: [{path: {value: /tls}}], backendRefs: [{name: tls, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: refused, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [refused.test]
  rules:
  - {matches: [{path: {value: /wss}}], backendRefs: [{name: wss, port: 80}]}
  - {matches: [{path: {value: /https}}], backendRefs: [{name: https, port: 80}]}
  - {matches: [{path: {value: /redis}}], backendRefs: [{name: redis, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shared, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [shared.test]
  rules:
  - backendRefs: [{name: http, port: 80, weight: 2}, {name: wss, port: 80, weight: 1}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: calls, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [calls.test]
  rules:
  - backendRefs: [{name: ws, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: tls, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: tls}]
  validation: {hostname: app.internal, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ca, namespace: shop}
data: {ca.crt: {{ca inside}}}

== backends
http: http for=shop/http app=http
ws: http for=shop/ws app=kubernetes.io/ws
h2c: h2c for=shop/h2c app=kubernetes.io/h2c
tls: https for=shop/tls app=kubernetes.io/wss "cert=app.internal by inside"
wss: http for=shop/wss app=kubernetes.io/wss
https: http for=shop/https app=https
redis: http for=shop/redis app=redis

== requests
$ curl http://shop.test/http
  HTTP/1.1 200 OK
  http saw GET /http HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/ws
  HTTP/1.1 200 OK
  ws saw GET /ws HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/h2c
  HTTP/1.1 200 OK
  h2c saw GET /h2c HTTP/2
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/tls
  HTTP/1.1 200 OK
  tls saw GET /tls HTTP/1.1
    [tls TLSv1_3, SNI app.internal, ALPN http/1.1]
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://refused.test/wss
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/refused has it, and nothing that it could go to
    fix: HTTPRoute shop/refused says ResolvedRefs: UnsupportedProtocol: rule 0: Service shop/wss, port 80: appProtocol "kubernetes.io/wss" takes TLS; write a BackendTLSPolicy for the Service; rule 1: Service shop/https, port 80: appProtocol "https" takes TLS; write a BackendTLSPolicy for the Service; rule 2: Service shop/redis, port 80: appProtocol "redis" is not done for HTTPRoutes; write http, kubernetes.io/h2c, kubernetes.io/ws, or leave it out
$ curl http://refused.test/https
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/refused has it, and nothing that it could go to
    fix: HTTPRoute shop/refused says ResolvedRefs: UnsupportedProtocol: rule 0: Service shop/wss, port 80: appProtocol "kubernetes.io/wss" takes TLS; write a BackendTLSPolicy for the Service; rule 1: Service shop/https, port 80: appProtocol "https" takes TLS; write a BackendTLSPolicy for the Service; rule 2: Service shop/redis, port 80: appProtocol "redis" is not done for HTTPRoutes; write http, kubernetes.io/h2c, kubernetes.io/ws, or leave it out
$ curl http://refused.test/redis
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/refused has it, and nothing that it could go to
    fix: HTTPRoute shop/refused says ResolvedRefs: UnsupportedProtocol: rule 0: Service shop/wss, port 80: appProtocol "kubernetes.io/wss" takes TLS; write a BackendTLSPolicy for the Service; rule 1: Service shop/https, port 80: appProtocol "https" takes TLS; write a BackendTLSPolicy for the Service; rule 2: Service shop/redis, port 80: appProtocol "redis" is not done for HTTPRoutes; write http, kubernetes.io/h2c, kubernetes.io/ws, or leave it out
# One share of three cannot be served.
$ x6 curl http://shared.test/
  4 × HTTP/1.1 200 OK from http
  2 × HTTP/1.1 500 Internal Server Error from the router
  explain: HTTPRoute shop/shared gets it, on 1 endpoint

== status
httproute shop/shop
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
httproute shop/refused
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=False UnsupportedProtocol: rule 0: Service shop/wss, port 80: appProtocol "kubernetes.io/wss" takes TLS; write a BackendTLSPolicy for the Service; rule 1: Service shop/https, port 80: appProtocol "https" takes TLS; write a BackendTLSPolicy for the Service; rule 2: Service shop/redis, port 80: appProtocol "redis" is not done for HTTPRoutes; write http, kubernetes.io/h2c, kubernetes.io/ws, or leave it out
httproute shop/shared
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=False UnsupportedProtocol: rule 0: Service shop/wss, port 80: appProtocol "kubernetes.io/wss" takes TLS; write a BackendTLSPolicy for the Service
grpcroute shop/calls
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=False UnsupportedProtocol: rule 0: Service shop/ws, port 80: appProtocol "kubernetes.io/ws" is not done for GRPCRoutes; write http, kubernetes.io/h2c, or leave it out
