What a route's conditions ask for
claims: HTTPProxy prefix, HTTPProxy exact, HTTPProxy regex, HTTPProxy header, HTTPProxy queryParameter, HTTPProxy present, HTTPProxy contains, HTTPProxy ignoreCase, HTTPProxy suffix, HTTPProxy Prefixes, HTTPProxy Order, HTTPProxy Methods
answer: x-route

Each route answers with a header field of its own.

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: paths, namespace: shop}
spec:
  virtualhost: {fqdn: paths.test}
  routes:
  - {conditions: [{prefix: /}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: all}]}}
  - {conditions: [{prefix: /shop}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: prefix}]}}
  - {conditions: [{prefix: /shop/cart}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: longer prefix}]}}
  - {conditions: [{exact: /shop/cart/1}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: exact}]}}
  - {conditions: [{regex: "/shop/cart/[0-9]+"}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: regex}]}}
  - {conditions: [{prefix: /shop}, {header: {name: X-Beta, present: true}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: prefix and header}]}}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: headers, namespace: shop}
spec:
  virtualhost: {fqdn: headers.test}
  routes:
  - {conditions: [{prefix: /}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: none}]}}
  - {conditions: [{prefix: /exact}, {header: {name: X-A, exact: "one"}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: exact}]}}
  - {conditions: [{prefix: /case}, {header: {name: X-A, exact: "one", ignoreCase: true}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: exact without case}]}}
  - {conditions: [{prefix: /contains}, {header: {name: X-A, contains: "ne"}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: contains}]}}
  - {conditions: [{prefix: /regex}, {header: {name: X-A, regex: "o[a-z]+"}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: regex}]}}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: methods, namespace: shop}
spec:
  virtualhost: {fqdn: methods.test}
  routes:
  - {conditions: [{header: {name: ":method", exact: GET}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: get}]}}
  - {conditions: [{header: {name: ":method", exact: POST}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: post}]}}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: method-like, namespace: shop}
spec:
  virtualhost: {fqdn: like.test}
  routes: [{conditions: [{header: {name: ":method", regex: "P.*"}}], services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: queries, namespace: shop}
spec:
  virtualhost: {fqdn: queries.test}
  routes:
  - {conditions: [{prefix: /}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: none}]}}
  - {conditions: [{prefix: /present}, {queryParameter: {name: q, present: true}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: present}]}}
  - {conditions: [{prefix: /exact}, {queryParameter: {name: q, exact: "one"}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: exact}]}}
  - {conditions: [{prefix: /case}, {queryParameter: {name: q, exact: "ONE", ignoreCase: true}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: exact without case}]}}
  - {conditions: [{prefix: /prefix}, {queryParameter: {name: q, prefix: "on"}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: prefix}]}}
  - {conditions: [{prefix: /suffix}, {queryParameter: {name: q, suffix: "ne"}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: suffix}]}}
  - {conditions: [{prefix: /contains}, {queryParameter: {name: q, contains: "n"}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: contains}]}}
  - {conditions: [{prefix: /regex}, {queryParameter: {name: q, regex: "o[a-z]+"}}], services: [{name: web, port: 80}], responseHeadersPolicy: {set: [{name: X-Route, value: regex}]}}

== backends
web: http for=shop/web

== requests
$ curl http://paths.test/
  HTTP/1.1 200 OK
    x-route: all
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/paths gets it, on 1 endpoint
$ curl http://paths.test/shop
  HTTP/1.1 200 OK
    x-route: prefix
  web saw GET /shop HTTP/1.1
  explain: HTTPProxy shop/paths gets it, on 1 endpoint
$ curl http://paths.test/shop/x
  HTTP/1.1 200 OK
    x-route: prefix
  web saw GET /shop/x HTTP/1.1
  explain: HTTPProxy shop/paths gets it, on 1 endpoint
# Whole segments.
$ curl http://paths.test/shopping
  HTTP/1.1 200 OK
    x-route: all
  web saw GET /shopping HTTP/1.1
  explain: HTTPProxy shop/paths gets it, on 1 endpoint
$ curl http://paths.test/shop/cart/x
  HTTP/1.1 200 OK
    x-route: longer prefix
  web saw GET /shop/cart/x HTTP/1.1
  explain: HTTPProxy shop/paths gets it, on 1 endpoint
$ curl http://paths.test/shop/cart/1
  HTTP/1.1 200 OK
    x-route: exact
  web saw GET /shop/cart/1 HTTP/1.1
  explain: HTTPProxy shop/paths gets it, on 1 endpoint
$ curl http://paths.test/shop/cart/2
  HTTP/1.1 200 OK
    x-route: regex
  web saw GET /shop/cart/2 HTTP/1.1
  explain: HTTPProxy shop/paths gets it, on 1 endpoint
$ curl http://paths.test/shop/cart/2/x
  HTTP/1.1 200 OK
    x-route: longer prefix
  web saw GET /shop/cart/2/x HTTP/1.1
  explain: HTTPProxy shop/paths gets it, on 1 endpoint
$ curl -H "X-Beta: 0" http://paths.test/shop/x
  HTTP/1.1 200 OK
    x-route: prefix and header
  web saw GET /shop/x HTTP/1.1
  explain: HTTPProxy shop/paths gets it, on 1 endpoint
$ curl -H "X-Beta: 0" http://paths.test/shop/cart/x
  HTTP/1.1 200 OK
    x-route: longer prefix
  web saw GET /shop/cart/x HTTP/1.1
  explain: HTTPProxy shop/paths gets it, on 1 endpoint
$ curl -H "X-A: one" http://headers.test/exact
  HTTP/1.1 200 OK
    x-route: exact
  web saw GET /exact HTTP/1.1
  explain: HTTPProxy shop/headers gets it, on 1 endpoint
$ curl -H "X-A: One" http://headers.test/exact
  HTTP/1.1 200 OK
    x-route: none
  web saw GET /exact HTTP/1.1
  explain: HTTPProxy shop/headers gets it, on 1 endpoint
$ curl -H "X-A: ONE" http://headers.test/case
  HTTP/1.1 200 OK
    x-route: exact without case
  web saw GET /case HTTP/1.1
  explain: HTTPProxy shop/headers gets it, on 1 endpoint
$ curl -H "X-A: money" http://headers.test/contains
  HTTP/1.1 200 OK
    x-route: contains
  web saw GET /contains HTTP/1.1
  explain: HTTPProxy shop/headers gets it, on 1 endpoint
$ curl -H "X-A: MONEY" http://headers.test/contains
  HTTP/1.1 200 OK
    x-route: none
  web saw GET /contains HTTP/1.1
  explain: HTTPProxy shop/headers gets it, on 1 endpoint
$ curl -H "X-A: one" http://headers.test/regex
  HTTP/1.1 200 OK
    x-route: regex
  web saw GET /regex HTTP/1.1
  explain: HTTPProxy shop/headers gets it, on 1 endpoint
$ curl -H "X-A: none" http://headers.test/regex
  HTTP/1.1 200 OK
    x-route: none
  web saw GET /regex HTTP/1.1
  explain: HTTPProxy shop/headers gets it, on 1 endpoint
$ curl http://methods.test/
  HTTP/1.1 200 OK
    x-route: get
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/methods gets it, on 1 endpoint
$ curl -X POST http://methods.test/
  HTTP/1.1 200 OK
    x-route: post
  web saw POST / HTTP/1.1
  explain: HTTPProxy shop/methods gets it, on 1 endpoint
$ curl -X DELETE http://methods.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/methods#methods.test has methods.test, and no rule takes /
    fix: HTTPProxy shop/methods takes it with -X POST; HTTPProxy shop/methods takes it with -X GET
$ curl http://like.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/method-like claims it and is not served: default: Invalid: spec.routes[0].conditions[0].header: of :method one exact condition is done, with regard to case; write that
    fix: correct HTTPProxy shop/method-like: as its status says; `sluice validate` shows the place
$ curl http://queries.test/present?q
  HTTP/1.1 200 OK
    x-route: present
  web saw GET /present?q HTTP/1.1
  explain: HTTPProxy shop/queries gets it, on 1 endpoint
$ curl http://queries.test/present?p=1
  HTTP/1.1 200 OK
    x-route: none
  web saw GET /present?p=1 HTTP/1.1
  explain: HTTPProxy shop/queries gets it, on 1 endpoint
$ curl http://queries.test/exact?q=one
  HTTP/1.1 200 OK
    x-route: exact
  web saw GET /exact?q=one HTTP/1.1
  explain: HTTPProxy shop/queries gets it, on 1 endpoint
$ curl http://queries.test/exact?q=ONE
  HTTP/1.1 200 OK
    x-route: none
  web saw GET /exact?q=ONE HTTP/1.1
  explain: HTTPProxy shop/queries gets it, on 1 endpoint
$ curl http://queries.test/case?q=one
  HTTP/1.1 200 OK
    x-route: exact without case
  web saw GET /case?q=one HTTP/1.1
  explain: HTTPProxy shop/queries gets it, on 1 endpoint
$ curl http://queries.test/prefix?q=one
  HTTP/1.1 200 OK
    x-route: prefix
  web saw GET /prefix?q=one HTTP/1.1
  explain: HTTPProxy shop/queries gets it, on 1 endpoint
$ curl http://queries.test/prefix?q=none
  HTTP/1.1 200 OK
    x-route: none
  web saw GET /prefix?q=none HTTP/1.1
  explain: HTTPProxy shop/queries gets it, on 1 endpoint
$ curl http://queries.test/suffix?q=none
  HTTP/1.1 200 OK
    x-route: suffix
  web saw GET /suffix?q=none HTTP/1.1
  explain: HTTPProxy shop/queries gets it, on 1 endpoint
$ curl http://queries.test/contains?q=none
  HTTP/1.1 200 OK
    x-route: contains
  web saw GET /contains?q=none HTTP/1.1
  explain: HTTPProxy shop/queries gets it, on 1 endpoint
$ curl http://queries.test/regex?q=one
  HTTP/1.1 200 OK
    x-route: regex
  web saw GET /regex?q=one HTTP/1.1
  explain: HTTPProxy shop/queries gets it, on 1 endpoint
$ curl http://queries.test/regex?q=none
  HTTP/1.1 200 OK
    x-route: none
  web saw GET /regex?q=none HTTP/1.1
  explain: HTTPProxy shop/queries gets it, on 1 endpoint

# A header that is repeated counts as one whose values stand behind commas.
$ curl -H "X-A: two" -H "X-A: one" http://headers.test/contains
  HTTP/1.1 200 OK
    x-route: contains
  web saw GET /contains HTTP/1.1
  explain: HTTPProxy shop/headers gets it, on 1 endpoint
$ curl -H "X-A: one" -H "X-A: two" http://headers.test/exact
  HTTP/1.1 200 OK
    x-route: none
  web saw GET /exact HTTP/1.1
  explain: HTTPProxy shop/headers gets it, on 1 endpoint

== status
httpproxy shop/paths
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/headers
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/methods
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/method-like
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    RouteError=True HeaderMatchConditionsNotValid: spec.routes[0].conditions[0].header: of :method one exact condition is done, with regard to case; write that
httpproxy shop/queries
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy

== validate
  warning: HTTPProxy shop/method-like: default does not serve it: Invalid: spec.routes[0].conditions[0].header: of :method one exact condition is done, with regard to case; write that
