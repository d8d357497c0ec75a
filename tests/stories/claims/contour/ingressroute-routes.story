Routes of an IngressRoute, and what is wrong with some
claims: IngressRoute Errors, IngressRoute Missing delegates, IngressRoute enableWebsockets, IngressRoute prefixRewrite, Which objects Router

The router `default` has it; the router `shared` has nothing of it.

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: shared, namespace: openshift-ingress-operator}
spec:
  domain: shared.test
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: root, namespace: shop}
spec:
  virtualhost: {fqdn: shop.test}
  routes:
  - {match: /, services: [{name: web, port: 80}]}
  - {match: /socket, enableWebsockets: true, services: [{name: web, port: 80}]}
  - {match: /old/, prefixRewrite: /new, services: [{name: web, port: 80}]}
  - {match: /gone, delegate: {name: gone}}
  - {match: /part, delegate: {name: part}}
---
# What stands before the first error serves.
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: part, namespace: shop}
spec:
  routes:
  - {match: /part/good, services: [{name: part, port: 80}]}
  - {match: /other, services: [{name: part, port: 80}]}
  - {match: /part/late, services: [{name: part, port: 80}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: no-service, namespace: shop}
spec:
  virtualhost: {fqdn: none.test}
  routes:
  - {match: /good, services: [{name: web, port: 80}]}
  - {match: /bad, services: [{name: nobody, port: 80}]}
  - {match: /late, services: [{name: web, port: 80}]}

== backends
web: http for=shop/web
part: http for=shop/part

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: IngressRoute shop/root gets it, on 1 endpoint
$ curl http://shop.test:8080/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: no route of router shared has shop.test
    fix: router default has it: ask on port 80 for http
$ send 80
> GET /socket HTTP/1.1
> Host: shop.test
> Connection: Upgrade
> Upgrade: websocket
> Sec-WebSocket-Version: 13
> Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
>
> end
  HTTP/1.1 101 Switching Protocols
  web saw GET /socket HTTP/1.1
  explain: IngressRoute shop/root gets it, on 1 endpoint
$ send 80
> GET / HTTP/1.1
> Host: shop.test
> Connection: Upgrade
> Upgrade: websocket
> Sec-WebSocket-Version: 13
> Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
>
> end
  HTTP/1.1 101 Switching Protocols
  web saw GET / HTTP/1.1
  explain: IngressRoute shop/root gets it, on 1 endpoint
$ curl http://shop.test/old/a/b
  HTTP/1.1 200 OK
  web saw GET /new/a/b HTTP/1.1
  explain: IngressRoute shop/root gets it, on 1 endpoint
$ curl http://shop.test/old
  HTTP/1.1 200 OK
  web saw GET /new HTTP/1.1
  explain: IngressRoute shop/root gets it, on 1 endpoint
# A shorter prefix has it.
$ curl http://shop.test/gone
  HTTP/1.1 200 OK
  web saw GET /gone HTTP/1.1
  explain: IngressRoute shop/root gets it, on 1 endpoint
$ curl http://shop.test/part/good/1
  HTTP/1.1 200 OK
  part saw GET /part/good/1 HTTP/1.1
  explain: IngressRoute shop/part gets it, on 1 endpoint
$ curl http://shop.test/part/late
  HTTP/1.1 200 OK
  web saw GET /part/late HTTP/1.1
  explain: IngressRoute shop/root gets it, on 1 endpoint
$ curl http://none.test/good
  HTTP/1.1 200 OK
  web saw GET /good HTTP/1.1
  explain: IngressRoute shop/no-service gets it, on 1 endpoint
$ curl http://none.test/bad
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute shop/no-service#none.test has none.test, and no rule takes /bad
    fix: correct IngressRoute shop/no-service: default: PartiallyInvalid: Service [nobody:80] is invalid or missing
$ curl http://none.test/late
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute shop/no-service#none.test has none.test, and no rule takes /late
    fix: correct IngressRoute shop/no-service: default: PartiallyInvalid: Service [nobody:80] is invalid or missing

== status
ingressroute shop/root
  currentStatus: valid
  description: valid IngressRoute
ingressroute shop/part
  currentStatus: invalid
  description: the path prefix "/other" does not match the parent's path prefix "/part"
  parents: shop/root /part -> shop/part
    IngressRoute shop/root#/part
    fqdn: shop.test
    currentStatus: invalid
    description: the path prefix "/other" does not match the parent's path prefix "/part"
ingressroute shop/no-service
  currentStatus: invalid
  description: Service [nobody:80] is invalid or missing

== validate
  warning: IngressRoute shop/part: IngressRoute shop/root serves it in part: PartiallyInvalid: the path prefix "/other" does not match the parent's path prefix "/part"
  warning: IngressRoute shop/no-service: default serves it in part: PartiallyInvalid: Service [nobody:80] is invalid or missing
