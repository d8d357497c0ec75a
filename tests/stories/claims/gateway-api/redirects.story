Redirects
answer: x-set
claims: Redirects, HTTPRoutePathRedirect, HTTPRoutePortRedirect, HTTPRouteSchemeRedirect, HTTPRoute303RedirectStatusCode, HTTPRoute307RedirectStatusCode, HTTPRoute308RedirectStatusCode

One without port names none that is the scheme's own, and else the listener's.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 80, protocol: HTTP}
  - {name: high, port: 8080, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.test]
  rules:
  - matches: [{path: {value: /host}}]
    filters: [{type: RequestRedirect, requestRedirect: {hostname: new.test}}]
  - matches: [{path: {value: /scheme}}]
    filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 301}}]
  - matches: [{path: {value: /same}}]
    filters: [{type: RequestRedirect, requestRedirect: {scheme: http, hostname: new.test}}]
  - matches: [{path: {value: /port}}]
    filters: [{type: RequestRedirect, requestRedirect: {port: 8443, scheme: https, statusCode: 303}}]
  - matches: [{path: {value: /known}}]
    filters: [{type: RequestRedirect, requestRedirect: {port: 443, scheme: https, statusCode: 307}}]
  - matches: [{path: {value: /prefix}}]
    filters: [{type: RequestRedirect, requestRedirect: {statusCode: 308, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}]
  - matches: [{path: {value: /gone}}]
    filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]
  - matches: [{path: {value: /full}}]
    filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath, replaceFullPath: /all}}}]
  - matches: [{path: {value: /status}}]
    filters:
    - type: RequestRedirect
      requestRedirect: {hostname: new.test}
    - type: ResponseHeaderModifier
      responseHeaderModifier: {set: [{name: x-set, value: "1"}]}

== requests
$ curl http://shop.test/host/a?b=c
  HTTP/1.1 302 Found
    location: http://new.test/host/a?b=c
  explain: HTTPRoute shop/shop redirects to {scheme}://new.test{path} with 302
$ curl http://shop.test:8080/host/a?b=c
  HTTP/1.1 302 Found
    location: http://new.test:8080/host/a?b=c
  explain: HTTPRoute shop/shop redirects to {scheme}://new.test{path} with 302
$ curl http://shop.test/scheme
  HTTP/1.1 301 Moved Permanently
    location: https://shop.test/scheme
  explain: HTTPRoute shop/shop redirects to https://{host}{path} with 301
$ curl http://shop.test:8080/scheme
  HTTP/1.1 301 Moved Permanently
    location: https://shop.test/scheme
  explain: HTTPRoute shop/shop redirects to https://{host}{path} with 301
$ curl http://shop.test:8080/same
  HTTP/1.1 302 Found
    location: http://new.test/same
  explain: HTTPRoute shop/shop redirects to http://new.test{path} with 302
$ curl http://shop.test:8080/port
  HTTP/1.1 303 See Other
    location: https://shop.test:8443/port
  explain: HTTPRoute shop/shop redirects to https://{host}:8443{path} with 303
$ curl http://shop.test:8080/known
  HTTP/1.1 307 Temporary Redirect
    location: https://shop.test/known
  explain: HTTPRoute shop/shop redirects to https://{host}:443{path} with 307
$ curl http://shop.test/prefix/a/b?c
  HTTP/1.1 308 Permanent Redirect
    location: http://shop.test/new/a/b?c
  explain: HTTPRoute shop/shop redirects to {scheme}://{host}/new in the place of /prefix with 308
$ curl http://shop.test/prefix
  HTTP/1.1 308 Permanent Redirect
    location: http://shop.test/new
  explain: HTTPRoute shop/shop redirects to {scheme}://{host}/new in the place of /prefix with 308
$ curl http://shop.test/prefix/
  HTTP/1.1 308 Permanent Redirect
    location: http://shop.test/new/
  explain: HTTPRoute shop/shop redirects to {scheme}://{host}/new in the place of /prefix with 308
$ curl http://shop.test/gone/a
  HTTP/1.1 302 Found
    location: http://shop.test/a
  explain: HTTPRoute shop/shop redirects to {scheme}://{host}/ in the place of /gone with 302
$ curl http://shop.test/gone
  HTTP/1.1 302 Found
    location: http://shop.test/
  explain: HTTPRoute shop/shop redirects to {scheme}://{host}/ in the place of /gone with 302
$ curl http://shop.test/full/a?b=c
  HTTP/1.1 302 Found
    location: http://shop.test/all?b=c
  explain: HTTPRoute shop/shop redirects to {scheme}://{host}/all with 302
$ curl http://shop.test/status
  HTTP/1.1 302 Found
    location: http://new.test/status
    x-set: 1
  explain: HTTPRoute shop/shop redirects to {scheme}://new.test{path} with 302

== status
httproute shop/shop
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
