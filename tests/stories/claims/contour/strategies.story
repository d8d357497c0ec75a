How endpoints are chosen
claims: HTTPProxy RoundRobin, HTTPProxy WeightedLeastRequest, HTTPProxy Random

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: shop, namespace: shop}
spec:
  virtualhost: {fqdn: shop.test}
  routes:
  - {services: [{name: web, port: 80}]}
  - {conditions: [{prefix: /turns}], services: [{name: web, port: 80}], loadBalancerPolicy: {strategy: RoundRobin}}
  - {conditions: [{prefix: /random}], services: [{name: web, port: 80}], loadBalancerPolicy: {strategy: Random}}
  - {conditions: [{prefix: /least}], services: [{name: busy, port: 80}], loadBalancerPolicy: {strategy: WeightedLeastRequest}}
  - {conditions: [{prefix: /unknown}], services: [{name: web, port: 80}], loadBalancerPolicy: {strategy: Fastest}}

== backends
one: http for=shop/web
two: http for=shop/web
three: http for=shop/web
slow: http for=shop/busy hold
quick: http for=shop/busy hold

== requests
$ x9 curl http://shop.test/
  3 × HTTP/1.1 200 OK from one
  3 × HTTP/1.1 200 OK from three
  3 × HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/shop gets it, on 3 endpoints
$ x9 curl http://shop.test/turns
  3 × HTTP/1.1 200 OK from one
  3 × HTTP/1.1 200 OK from three
  3 × HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/shop gets it, on 3 endpoints
$ ~x60 curl http://shop.test/random
  HTTP/1.1 200 OK from one
  HTTP/1.1 200 OK from three
  HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/shop gets it, on 3 endpoints
# Whoever has a request has more than who has none.
$ x4 curl http://shop.test/least &
$ release
$ wait
  $ curl http://shop.test/least
  HTTP/1.1 200 OK
  slow saw GET /least HTTP/1.1
  explain: HTTPProxy shop/shop gets it, on 2 endpoints
  $ curl http://shop.test/least
  HTTP/1.1 200 OK
  quick saw GET /least HTTP/1.1
  explain: HTTPProxy shop/shop gets it, on 2 endpoints
  $ curl http://shop.test/least
  HTTP/1.1 200 OK
  slow saw GET /least HTTP/1.1
  explain: HTTPProxy shop/shop gets it, on 2 endpoints
  $ curl http://shop.test/least
  HTTP/1.1 200 OK
  quick saw GET /least HTTP/1.1
  explain: HTTPProxy shop/shop gets it, on 2 endpoints
$ x9 curl http://shop.test/unknown
  3 × HTTP/1.1 200 OK from one
  3 × HTTP/1.1 200 OK from three
  3 × HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/shop gets it, on 3 endpoints

== status
httpproxy shop/shop
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy

== validate
  warning: HTTPProxy shop/shop: spec.routes[4].loadBalancerPolicy.strategy: "Fastest" is not a supported strategy, RoundRobin is used; write RoundRobin, WeightedLeastRequest, Random, Cookie or, in an HTTPProxy's route, RequestHash
