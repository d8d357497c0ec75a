A rule for a path has every spelling of it
claims: HTTPProxy Paths, IngressRoute match, IngressRoute delegate
answer: location

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: guarded, namespace: shop}
spec:
  virtualhost: {fqdn: shop.test}
  routes:
  - conditions: [{prefix: /admin}]
    directResponsePolicy: {statusCode: 403}
  - conditions: [{prefix: /old}]
    requestRedirectPolicy: {prefix: /new}
  - services: [{name: web, port: 80}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: root, namespace: shop}
spec:
  virtualhost: {fqdn: parts.test}
  routes:
  - {match: /, services: [{name: web, port: 80}]}
  - {match: /red, delegate: {namespace: red, name: part}}
  - {match: /blue, delegate: {namespace: red, name: greedy}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: part, namespace: red}
spec:
  routes:
  - {match: /red, services: [{name: web, port: 80}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: greedy, namespace: red}
spec:
  routes:
  - {match: /blue/../own, services: [{name: web, port: 80}]}

== backends
shop: http for=shop/web
red: http for=red/web

== requests
$ curl --path-as-is http://shop.test/admin
  HTTP/1.1 403 Forbidden
    x-sluice-cause: rule-answer
  explain: HTTPProxy shop/guarded answers 403 itself
$ curl --path-as-is http://shop.test/x/../admin
  HTTP/1.1 403 Forbidden
    x-sluice-cause: rule-answer
  explain: HTTPProxy shop/guarded answers 403 itself
$ curl --path-as-is http://shop.test//admin/1
  HTTP/1.1 403 Forbidden
    x-sluice-cause: rule-answer
  explain: HTTPProxy shop/guarded answers 403 itself
$ curl --path-as-is http://shop.test/./admin
  HTTP/1.1 403 Forbidden
    x-sluice-cause: rule-answer
  explain: HTTPProxy shop/guarded answers 403 itself
$ curl --path-as-is http://shop.test/x/%2e%2e/%61dmin
  HTTP/1.1 403 Forbidden
    x-sluice-cause: rule-answer
  explain: HTTPProxy shop/guarded answers 403 itself
$ curl --path-as-is http://shop.test/a//b/../c?d=/../e//f
  HTTP/1.1 200 OK
  shop saw GET /a/c?d=/../e//f HTTP/1.1
  explain: HTTPProxy shop/guarded gets it, on 1 endpoint
$ curl --path-as-is http://shop.test/admin/../public
  HTTP/1.1 200 OK
  shop saw GET /public HTTP/1.1
  explain: HTTPProxy shop/guarded gets it, on 1 endpoint
$ curl --path-as-is http://shop.test/x/..//old/./a
  HTTP/1.1 302 Found
    location: http://shop.test/new/a
  explain: HTTPProxy shop/guarded redirects to {scheme}://{host}/new in the place of /old with 302

# What only an endpoint could take for /admin.
$ curl --path-as-is http://shop.test/x%2F..%2Fadmin
  HTTP/1.1 200 OK
  shop saw GET /x%2F..%2Fadmin HTTP/1.1
  explain: HTTPProxy shop/guarded gets it, on 1 endpoint

$ curl --path-as-is http://parts.test/x/../red/1
  HTTP/1.1 200 OK
  red saw GET /red/1 HTTP/1.1
  explain: IngressRoute red/part gets it, on 1 endpoint
$ curl --path-as-is http://parts.test/red/../own
  HTTP/1.1 200 OK
  shop saw GET /own HTTP/1.1
  explain: IngressRoute shop/root gets it, on 1 endpoint
$ curl --path-as-is http://parts.test/blue/../own
  HTTP/1.1 200 OK
  shop saw GET /own HTTP/1.1
  explain: IngressRoute shop/root gets it, on 1 endpoint

== status
httpproxy shop/guarded
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
ingressroute red/part
  currentStatus: valid
  description: valid IngressRoute
  parents: shop/root /red -> red/part
    IngressRoute shop/root#/red
    fqdn: parts.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute red/greedy
  currentStatus: invalid
  description: the path prefix "/own" does not match the parent's path prefix "/blue"
  parents: shop/root /blue -> red/greedy
    IngressRoute shop/root#/blue
    fqdn: parts.test
    currentStatus: invalid
    description: the path prefix "/own" does not match the parent's path prefix "/blue"

== validate
  warning: IngressRoute red/greedy: IngressRoute shop/root does not serve it: Invalid: the path prefix "/own" does not match the parent's path prefix "/blue"
  warning: IngressRoute red/greedy: spec.routes[0].match: paths are compared in normal form, in which "/blue/../own" is "/own"; write that
