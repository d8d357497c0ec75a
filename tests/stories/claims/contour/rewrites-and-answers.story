Paths that are rewritten, redirects, and answers without a service
claims: HTTPProxy pathRewritePolicy, HTTPProxy requestRedirectPolicy, HTTPProxy directResponsePolicy
answer: x-answer
seen: host

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: shop, namespace: shop}
spec:
  virtualhost: {fqdn: shop.test}
  includes: [{name: part, conditions: [{prefix: /v1}]}]
  routes:
  - conditions: [{prefix: /old}]
    services: [{name: web, port: 80}]
    pathRewritePolicy: {replacePrefix: [{replacement: /new}]}
  - conditions: [{prefix: /bare}]
    services: [{name: web, port: 80}]
    pathRewritePolicy: {replacePrefix: [{replacement: /}]}
  - conditions: [{prefix: /away}]
    requestRedirectPolicy: {scheme: https, hostname: other.test, port: 8443, path: /there, statusCode: 301}
  - conditions: [{prefix: /moved}]
    requestRedirectPolicy: {prefix: /new}
  - conditions: [{prefix: /secure}]
    requestRedirectPolicy: {scheme: https}
  - conditions: [{prefix: /closed}]
    directResponsePolicy: {statusCode: 410}
    responseHeadersPolicy: {set: [{name: X-Answer, value: gone}]}
  - conditions: [{prefix: /host}]
    services: [{name: web, port: 80}]
    requestHeadersPolicy: {set: [{name: Host, value: inside.test}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: part, namespace: shop}
spec:
  routes:
  - conditions: [{prefix: /api}]
    services: [{name: web, port: 80}]
    pathRewritePolicy: {replacePrefix: [{prefix: /v2/api, replacement: /second}, {prefix: /v1/api, replacement: /first}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: exact, namespace: shop}
spec:
  virtualhost: {fqdn: exact.test}
  routes:
  - conditions: [{exact: /old}]
    services: [{name: web, port: 80}]
    pathRewritePolicy: {replacePrefix: [{replacement: /new}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: two, namespace: shop}
spec:
  virtualhost: {fqdn: two.test}
  routes:
  - services: [{name: web, port: 80}]
    directResponsePolicy: {statusCode: 410}

== backends
web: http for=shop/web

== requests
$ curl http://shop.test/old/a?b=c
  HTTP/1.1 200 OK
  web saw GET /new/a?b=c HTTP/1.1
    host: shop.test
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://shop.test/old
  HTTP/1.1 200 OK
  web saw GET /new HTTP/1.1
    host: shop.test
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://shop.test/older
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/shop#shop.test has shop.test, and no rule takes /older
    fix: give a route on HTTPProxy shop/shop#shop.test a rule that matches /older
$ curl http://shop.test/bare/a
  HTTP/1.1 200 OK
  web saw GET /a HTTP/1.1
    host: shop.test
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://shop.test/bare
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
    host: shop.test
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://shop.test/v1/api/a
  HTTP/1.1 200 OK
  web saw GET /first/a HTTP/1.1
    host: shop.test
  explain: HTTPProxy shop/part gets it, on 1 endpoint
$ curl http://shop.test/away/a?b
  HTTP/1.1 301 Moved Permanently
    location: https://other.test:8443/there?b
  explain: HTTPProxy shop/shop redirects to https://other.test:8443/there with 301
$ curl http://shop.test/moved/a?b
  HTTP/1.1 302 Found
    location: http://shop.test/new/a?b
  explain: HTTPProxy shop/shop redirects to {scheme}://{host}/new in the place of /moved with 302
$ curl http://shop.test/secure/a?b
  HTTP/1.1 302 Found
    location: https://shop.test/secure/a?b
  explain: HTTPProxy shop/shop redirects to https://{host}{path} with 302
$ curl http://shop.test/closed
  HTTP/1.1 410 Gone
    x-sluice-cause: rule-answer
    x-answer: gone
  explain: HTTPProxy shop/shop answers 410 itself
$ curl http://shop.test/host
  HTTP/1.1 200 OK
  web saw GET /host HTTP/1.1
    host: inside.test
  explain: HTTPProxy shop/shop gets it, on 1 endpoint
$ curl http://exact.test/old
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/exact claims it and is not served: default: Invalid: cannot specify prefix replacements without a prefix condition
    fix: correct HTTPProxy shop/exact: as its status says; `sluice validate` shows the place
$ curl http://two.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/two claims it and is not served: default: Invalid: cannot specify services, requestRedirectPolicy and directResponsePolicy in the same route; keep one of them
    fix: correct HTTPProxy shop/two: as its status says; `sluice validate` shows the place

== status
httpproxy shop/shop
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/part
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
  parents: shop/shop prefix /v1 -> shop/part
    HTTPProxy shop/shop#prefix /v1
    fqdn: shop.test
    currentStatus: valid
    description: valid HTTPProxy
httpproxy shop/exact
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    PrefixReplaceError=True MustHavePrefix: cannot specify prefix replacements without a prefix condition
httpproxy shop/two
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    RouteError=True ActionNotUnique: cannot specify services, requestRedirectPolicy and directResponsePolicy in the same route; keep one of them

== validate
  warning: HTTPProxy shop/exact: default does not serve it: Invalid: cannot specify prefix replacements without a prefix condition
  warning: HTTPProxy shop/two: default does not serve it: Invalid: cannot specify services, requestRedirectPolicy and directResponsePolicy in the same route; keep one of them
