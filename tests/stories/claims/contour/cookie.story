A cookie keeps clients with their endpoints
claims: HTTPProxy Cookie, HTTPProxy loadBalancerPolicy, IngressRoute strategy
answer: set-cookie
seen: cookie
mask: =[0-9a-f]{32}

Whoever has no cookie gets one, and an endpoint by chance. Any value stands for a client, who has the same endpoint on all routes to a service,
whatever becomes of other endpoints.

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: sticky, namespace: shop}
spec:
  virtualhost: {fqdn: sticky.test}
  routes:
  - services: [{name: web, port: 80}]
    loadBalancerPolicy: {strategy: Cookie}
  - conditions: [{prefix: /api}]
    services: [{name: web, port: 80}]
    loadBalancerPolicy: {strategy: Cookie}
  - conditions: [{prefix: /shares}]
    services: [{name: web, port: 80, weight: 3}, {name: canary, port: 80, weight: 1}]
    loadBalancerPolicy: {strategy: Cookie}
  - conditions: [{prefix: /one}]
    services: [{name: canary, port: 80}]
    loadBalancerPolicy: {strategy: Cookie}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: mixed, namespace: shop}
spec:
  virtualhost: {fqdn: mixed.test}
  routes:
  - match: /
    services: [{name: web, port: 80, strategy: Cookie}, {name: turns, port: 80}]

== backends
one: http for=shop/web
two: http for=shop/web
three: http for=shop/web
canary: http for=shop/canary
four: http for=shop/turns
five: http for=shop/turns

== requests
$ curl http://sticky.test/one
  HTTP/1.1 200 OK
    set-cookie: X-Contour-Session-Affinity…; Path=/; HttpOnly
  canary saw GET /one HTTP/1.1
  explain: HTTPProxy shop/sticky gets it, on 1 endpoint
$ curl -b "a=1; X-Contour-Session-Affinity=client-1" http://sticky.test/one
  HTTP/1.1 200 OK
  canary saw GET /one HTTP/1.1
    cookie: a=1; X-Contour-Session-Affinity=client-1
  explain: HTTPProxy shop/sticky gets it, on 1 endpoint
$ ~x60 curl http://sticky.test/
  HTTP/1.1 200 OK from one
  HTTP/1.1 200 OK from three
  HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/sticky gets it, on 3 endpoints
$ x9 curl -b X-Contour-Session-Affinity=client-1 http://sticky.test/
  9 × HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/sticky gets it, on 3 endpoints
$ x9 curl -b X-Contour-Session-Affinity=client-1 http://sticky.test/api
  9 × HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/sticky gets it, on 3 endpoints
$ x9 curl -b X-Contour-Session-Affinity=client-2 http://sticky.test/
  9 × HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/sticky gets it, on 3 endpoints
$ x9 curl -b X-Contour-Session-Affinity=client-6 http://sticky.test/shares
  9 × HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/sticky gets it, on 4 endpoints
$ x9 curl -b X-Contour-Session-Affinity=client-4 http://sticky.test/shares
  9 × HTTP/1.1 200 OK from canary
  explain: HTTPProxy shop/sticky gets it, on 4 endpoints
$ x12 curl -b X-Contour-Session-Affinity=client-1 http://mixed.test/
  3 × HTTP/1.1 200 OK from five
  3 × HTTP/1.1 200 OK from four
  6 × HTTP/1.1 200 OK from two
  explain: IngressRoute shop/mixed gets it, on 5 endpoints

== status
httpproxy shop/sticky
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
ingressroute shop/mixed
  currentStatus: valid
  description: valid IngressRoute
