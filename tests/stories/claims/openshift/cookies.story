A client stays with its endpoint by a cookie
claims: haproxy.router.openshift.io/disable_cookies, router.openshift.io/cookie_name, router.openshift.io/cookie-same-site
answer: set-cookie
seen: cookie

The endpoint does not see the cookie.
mask: =[0-9a-f]{32}|\b(east|west)\b

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: usual, namespace: shop}
spec:
  host: usual.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: named
  namespace: shop
  annotations: {router.openshift.io/cookie_name: shopping, router.openshift.io/cookie-same-site: Strict}
spec:
  host: named.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert named.apps.test}}, key: {{key named.apps.test}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: without
  namespace: shop
  annotations:
    haproxy.router.openshift.io/disable_cookies: "True"
    haproxy.router.openshift.io/balance: roundrobin
    router.openshift.io/cookie_name: shopping
spec:
  host: without.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: wrong
  namespace: shop
  annotations:
    router.openshift.io/cookie_name: "no name"
    router.openshift.io/cookie-same-site: Lax
spec:
  host: wrong.apps.test
  to: {kind: Service, name: web}

== backends
east: http for=shop/web
west: http for=shop/web

== requests
# One of the two, and always that one.
$ curl -c usual -o /dev/null http://usual.apps.test/
  HTTP/1.1 200 OK
    set-cookie: 27261068cc2a1aa2b0916db59ef5f89c…; path=/; HttpOnly
  … saw GET / HTTP/1.1
  explain: Route shop/usual gets it, on 2 endpoints
$ x12 curl -b usual http://usual.apps.test/
  12 × HTTP/1.1 200 OK from …
  explain: Route shop/usual gets it, on 2 endpoints

$ curl -c named https://named.apps.test/
  HTTP/2 200
    set-cookie: shopping…; path=/; HttpOnly; Secure; SameSite=Strict
  … saw GET / HTTP/1.1
  explain: Route shop/named gets it, on 2 endpoints
$ x12 curl -b named https://named.apps.test/
  12 × HTTP/2 200 from …
  explain: Route shop/named gets it, on 2 endpoints

$ x4 curl -c without -b without http://without.apps.test/
  2 × HTTP/1.1 200 OK from …
  2 × HTTP/1.1 200 OK from …
  explain: Route shop/without gets it, on 2 endpoints
$ curl http://without.apps.test/
  HTTP/1.1 200 OK
  … saw GET / HTTP/1.1
  explain: Route shop/without gets it, on 2 endpoints
$ curl http://wrong.apps.test/
  HTTP/1.1 200 OK
    set-cookie: 73bf84df4fc95af5c664c338ee9e42fa…; path=/; HttpOnly
  … saw GET / HTTP/1.1
  explain: Route shop/wrong gets it, on 2 endpoints

== validate
  warning: Route shop/without: metadata.annotations[router.openshift.io/cookie_name]: has no effect, because haproxy.router.openshift.io/disable_cookies is true; remove one of the two
  warning: Route shop/wrong: metadata.annotations[router.openshift.io/cookie_name]: Invalid value: "no name", ignored; write a name of letters, digits, '-' and '_'
  warning: Route shop/wrong: metadata.annotations[router.openshift.io/cookie-same-site]: is only for edge and reencrypt routes that do not allow clear text, ignored; remove it, or write insecureEdgeTerminationPolicy: Redirect
