Which of several rules serves
claims: Order, Regular expressions, First values, HTTPRouteMethodMatching, HTTPRouteQueryParamMatching, HTTPRouteNamedRouteRule

Whatever their place in the route: exact path, regular expression, longest prefix, method, headers, query parameters; then age.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners: [{name: web, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop, creationTimestamp: "2025-02-01T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.test]
  rules:
  - {name: short, matches: [{path: {value: /a}}], backendRefs: [{name: short, port: 80}]}
  - {name: long, matches: [{path: {value: /a/b}}], backendRefs: [{name: long, port: 80}]}
  - name: query
    matches: [{path: {value: /a}, queryParams: [{name: v, value: "2"}]}]
    backendRefs: [{name: query, port: 80}]
  - name: header
    matches: [{path: {value: /a}, headers: [{name: X-Version, value: "2"}]}]
    backendRefs: [{name: header, port: 80}]
  - name: headers
    matches: [{path: {value: /a}, headers: [{name: x-version, value: "2"}, {name: x-who, type: RegularExpression, value: "an+a"}]}]
    backendRefs: [{name: headers, port: 80}]
  - name: method
    matches: [{path: {value: /a}, method: PUT}]
    backendRefs: [{name: method, port: 80}]
  - name: regex
    matches: [{path: {type: RegularExpression, value: "/a/b/[0-9]+"}}]
    backendRefs: [{name: regex, port: 80}]
  - name: longer-regex
    matches: [{path: {type: RegularExpression, value: "/a/b/[0-9]+(/x)?"}}, {path: {type: Exact, value: /also}}]
    backendRefs: [{name: longer, port: 80}]
  - name: exact
    matches: [{path: {type: Exact, value: /a/b/7}}]
    backendRefs: [{name: exact, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: older, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: [shop.test]
  rules:
  - {matches: [{path: {value: /a/b/}, method: PATCH}], backendRefs: [{name: older, port: 80}]}
  - {matches: [{path: {value: /a}}], backendRefs: [{name: older, port: 80}]}

== backends
short: http for=shop/short
long: http for=shop/long
query: http for=shop/query
header: http for=shop/header
headers: http for=shop/headers
method: http for=shop/method
regex: http for=shop/regex
longer: http for=shop/longer
exact: http for=shop/exact
older: http for=shop/older

== requests
$ curl http://shop.test/a/b/7
  HTTP/1.1 200 OK
  exact saw GET /a/b/7 HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/also
  HTTP/1.1 200 OK
  longer saw GET /also HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
# Both expressions match, and the longer one counts.
$ curl http://shop.test/a/b/8
  HTTP/1.1 200 OK
  longer saw GET /a/b/8 HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
# An expression is for the whole path.
$ curl http://shop.test/a/b/8/y
  HTTP/1.1 200 OK
  long saw GET /a/b/8/y HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/a/bc
  HTTP/1.1 200 OK
  older saw GET /a/bc HTTP/1.1
  explain: HTTPRoute shop/older gets it, on 1 endpoint
$ curl -X PUT -H 'x-version: 2' http://shop.test/a
  HTTP/1.1 200 OK
  method saw PUT /a HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
# The longer prefix comes before the method.
$ curl -X PUT http://shop.test/a/b
  HTTP/1.1 200 OK
  long saw PUT /a/b HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl -X PATCH http://shop.test/a/b
  HTTP/1.1 200 OK
  older saw PATCH /a/b HTTP/1.1
  explain: HTTPRoute shop/older gets it, on 1 endpoint
$ curl -H 'x-version: 2' -H 'x-who: anna' http://shop.test/a?v=2
  HTTP/1.1 200 OK
  headers saw GET /a?v=2 HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl -H 'x-version: 2' -H 'x-who: hannah' http://shop.test/a?v=2
  HTTP/1.1 200 OK
  header saw GET /a?v=2 HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/a?v=2
  HTTP/1.1 200 OK
  query saw GET /a?v=2 HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/a?v=3&v=2
  HTTP/1.1 200 OK
  older saw GET /a?v=3&v=2 HTTP/1.1
  explain: HTTPRoute shop/older gets it, on 1 endpoint
$ curl http://shop.test/a?v=%32
  HTTP/1.1 200 OK
  query saw GET /a?v=%32 HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl -H 'x-version: 1' -H 'x-version: 2' http://shop.test/a
  HTTP/1.1 200 OK
  older saw GET /a HTTP/1.1
  explain: HTTPRoute shop/older gets it, on 1 endpoint
$ curl http://shop.test/A
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has shop.test, and no rule takes /A
    fix: give a route on Gateway shop/public#web a rule that matches /A
$ curl http://shop.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has shop.test, and no rule takes /
    fix: give a route on Gateway shop/public#web a rule that matches /
