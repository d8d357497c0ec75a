Requests with the same hash go to the same endpoint
claims: HTTPProxy RequestHash

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: hash, namespace: shop}
spec:
  virtualhost: {fqdn: hash.test}
  routes:
  - services: [{name: web, port: 80}]
    loadBalancerPolicy:
      strategy: RequestHash
      requestHashPolicies:
      - {headerHashOptions: {headerName: X-User}, terminal: true}
      - {queryParameterHashOptions: {parameterName: shard}}
  - conditions: [{prefix: /address}]
    services: [{name: web, port: 80}]
    loadBalancerPolicy:
      strategy: RequestHash
      requestHashPolicies: [{hashSourceIP: true}, {hashSourceIP: true}]
  - conditions: [{prefix: /nothing}]
    services: [{name: web, port: 80}]
    loadBalancerPolicy:
      strategy: RequestHash
      requestHashPolicies: [{terminal: true}]

== backends
one: http for=shop/web
two: http for=shop/web
three: http for=shop/web

== requests
$ x9 curl -H "X-User: ann" http://hash.test/
  9 × HTTP/1.1 200 OK from three
  explain: HTTPProxy shop/hash gets it, on 3 endpoints
$ x9 curl -H "X-User: ann" http://hash.test/?shard=7
  9 × HTTP/1.1 200 OK from three
  explain: HTTPProxy shop/hash gets it, on 3 endpoints
$ x9 curl -H "X-User: bob" http://hash.test/
  9 × HTTP/1.1 200 OK from three
  explain: HTTPProxy shop/hash gets it, on 3 endpoints
$ x9 curl -H "X-User: cid" http://hash.test/
  9 × HTTP/1.1 200 OK from one
  explain: HTTPProxy shop/hash gets it, on 3 endpoints
$ x9 curl http://hash.test/?shard=7
  9 × HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/hash gets it, on 3 endpoints
$ x9 curl http://hash.test/?x=1&shard=8
  9 × HTTP/1.1 200 OK from three
  explain: HTTPProxy shop/hash gets it, on 3 endpoints
$ ~x40 curl http://hash.test/
  HTTP/1.1 200 OK from one
  HTTP/1.1 200 OK from three
  HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/hash gets it, on 3 endpoints
$ x9 curl http://hash.test/address
  9 × HTTP/1.1 200 OK from three
  explain: HTTPProxy shop/hash gets it, on 3 endpoints
$ x9 curl --interface 192.0.2.2 http://hash.test/address
  9 × HTTP/1.1 200 OK from three
  explain: HTTPProxy shop/hash gets it, on 3 endpoints
$ x9 curl --interface 198.51.100.7 http://hash.test/address
  9 × HTTP/1.1 200 OK from three
  explain: HTTPProxy shop/hash gets it, on 3 endpoints
$ x9 curl http://hash.test/nothing
  3 × HTTP/1.1 200 OK from one
  3 × HTTP/1.1 200 OK from three
  3 × HTTP/1.1 200 OK from two
  explain: HTTPProxy shop/hash gets it, on 3 endpoints

== status
httpproxy shop/hash
  currentStatus: valid
  description: Valid HTTPProxy; ignoring spec.routes[1].loadBalancerPolicy.requestHashPolicies[1]: the same is hashed before; remove it; ignoring spec.routes[2].loadBalancerPolicy.requestHashPolicies[0]: write exactly one of hashSourceIP, headerHashOptions and queryParameterHashOptions; spec.routes[2].loadBalancerPolicy.requestHashPolicies: ignoring strategy RequestHash, which needs at least one; endpoints are chosen by RoundRobin
  Valid=True: Valid HTTPProxy; ignoring spec.routes[1].loadBalancerPolicy.requestHashPolicies[1]: the same is hashed before; remove it; ignoring spec.routes[2].loadBalancerPolicy.requestHashPolicies[0]: write exactly one of hashSourceIP, headerHashOptions and queryParameterHashOptions; spec.routes[2].loadBalancerPolicy.requestHashPolicies: ignoring strategy RequestHash, which needs at least one; endpoints are chosen by RoundRobin
