Where roots may be, and which domains are nobody's
claims: Hosts Root namespaces, Hosts Denied domains
flags: --ingressroute-root-namespaces shop --denied-domains denied.test

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: outside, namespace: team, creationTimestamp: "2025-01-01T00:00:00Z"}
spec: {virtualhost: {fqdn: shop.test}, routes: [{services: [{name: web, port: 80}]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: outside, namespace: team, creationTimestamp: "2025-01-01T00:00:00Z"}
spec: {virtualhost: {fqdn: team.test}, routes: [{match: /, services: [{name: web, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: root, namespace: shop, creationTimestamp: "2025-02-01T00:00:00Z"}
spec:
  virtualhost: {fqdn: shop.test}
  includes: [{name: part, namespace: team, conditions: [{prefix: /team}]}]
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: part, namespace: team}
spec: {routes: [{services: [{name: web, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: denied, namespace: shop}
spec: {virtualhost: {fqdn: www.denied.test}, routes: [{services: [{name: web, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: wide, namespace: shop}
spec: {virtualhost: {fqdn: "*.test"}, routes: [{services: [{name: web, port: 80}]}]}

== backends
shop: http for=shop/web
team: http for=team/web

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  shop saw GET / HTTP/1.1
  explain: HTTPProxy shop/root gets it, on 1 endpoint
$ curl http://shop.test/team
  HTTP/1.1 200 OK
  team saw GET /team HTTP/1.1
  explain: HTTPProxy team/part gets it, on 1 endpoint
$ curl http://team.test/
  HTTP/1.1 200 OK
  shop saw GET / HTTP/1.1
  explain: HTTPProxy shop/wide gets it, on 1 endpoint
$ curl http://denied.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: denied.test is in the list of denied domains
    fix: ask for another host, or change --denied-domains of the agent
$ curl http://www.denied.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: *.denied.test is in the list of denied domains
    fix: ask for another host, or change --denied-domains of the agent
$ curl http://any.test/
  HTTP/1.1 200 OK
  shop saw GET / HTTP/1.1
  explain: HTTPProxy shop/wide gets it, on 1 endpoint

== status
httpproxy team/outside
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    RootNamespaceError=True RootProxyNotAllowedInNamespace: root HTTPProxy cannot be defined in this namespace
ingressroute team/outside
  currentStatus: invalid
  description: root IngressRoute cannot be defined in this namespace
httpproxy shop/root
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy team/part
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
  parents: shop/root prefix /team -> team/part
    HTTPProxy shop/root#prefix /team
    fqdn: shop.test
    currentStatus: valid
    description: valid HTTPProxy
httpproxy shop/denied
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    VirtualHostError=True HostNotAllowed: fqdn "www.denied.test" cannot be served: host in list of denied domains
httpproxy shop/wide
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
