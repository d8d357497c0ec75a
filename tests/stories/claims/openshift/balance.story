How an endpoint is chosen
claims: haproxy.router.openshift.io/balance

In turn, by chance, where the fewest requests are under way, or by the client's address. A value that is none has no effect, and is told.

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: turns
  namespace: shop
  annotations:
    haproxy.router.openshift.io/balance: roundrobin
    haproxy.router.openshift.io/disable_cookies: "true"
spec:
  host: turns.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: source
  namespace: shop
  annotations: {haproxy.router.openshift.io/balance: source}
spec:
  host: source.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: fewest
  namespace: shop
  annotations: {haproxy.router.openshift.io/balance: leastconn}
spec:
  host: fewest.apps.test
  to: {kind: Service, name: slow}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: chance
  namespace: shop
  annotations: {haproxy.router.openshift.io/balance: random}
spec:
  host: chance.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: wrong
  namespace: shop
  annotations: {haproxy.router.openshift.io/balance: fair}
spec:
  host: wrong.apps.test
  to: {kind: Service, name: web}

== backends
one: http for=shop/web
two: http for=shop/web
three: http hold for=shop/slow
four: http hold for=shop/slow

== requests
$ x6 curl http://turns.apps.test/
  3 × HTTP/1.1 200 OK from one
  3 × HTTP/1.1 200 OK from two
  explain: Route shop/turns gets it, on 2 endpoints
$ ~x30 curl http://chance.apps.test/
  HTTP/1.1 200 OK from one
  HTTP/1.1 200 OK from two
  explain: Route shop/chance gets it, on 2 endpoints
$ ~x30 curl http://wrong.apps.test/
  HTTP/1.1 200 OK from one
  HTTP/1.1 200 OK from two
  explain: Route shop/wrong gets it, on 2 endpoints

# The same client goes to the same endpoint: one line.
$ x10 curl http://source.apps.test/
  10 × HTTP/1.1 200 OK from two
  explain: Route shop/source gets it, on 2 endpoints

# Each of two gets one of two that are under way at the same time.
$ curl http://fewest.apps.test/ &
$ curl http://fewest.apps.test/ &
$ await three
  three saw GET / HTTP/1.1
$ await four
  four saw GET / HTTP/1.1
$ release
$ wait
  $ curl http://fewest.apps.test/
  HTTP/1.1 200 OK
  three saw GET / HTTP/1.1
  explain: Route shop/fewest gets it, on 2 endpoints
  $ curl http://fewest.apps.test/
  HTTP/1.1 200 OK
  four saw GET / HTTP/1.1
  explain: Route shop/fewest gets it, on 2 endpoints

== validate
  warning: Route shop/wrong: metadata.annotations[haproxy.router.openshift.io/balance]: Unsupported value: "fair", ignored; write roundrobin, leastconn, source or random
