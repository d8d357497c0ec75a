Domains that nobody serves
claims: Denied domains
flags: --denied-domains denied.test,apps.allowed.test --allowed-domains allowed.test

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: allowed, namespace: shop}
spec: {host: shop.allowed.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: denied, namespace: shop}
spec: {host: shop.apps.allowed.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: outside, namespace: shop}
spec: {host: shop.elsewhere.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ curl http://shop.allowed.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/allowed gets it, on 1 endpoint
$ curl http://shop.apps.allowed.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: *.apps.allowed.test is in the list of denied domains
    fix: ask for another host, or change --denied-domains of the agent
$ curl http://shop.elsewhere.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: Route shop/outside claims it and is not served: RouteNotAdmitted: host not in the allowed list of domains
    fix: give the route another host, or change --denied-domains and --allowed-domains of the agent

== status
route shop/allowed
  ingress: default
    Admitted=True
    host: shop.allowed.test
    wildcardPolicy: None
route shop/denied
  ingress: default
    Admitted=False RouteNotAdmitted: host in list of denied domains
    host: shop.apps.allowed.test
    wildcardPolicy: None
route shop/outside
  ingress: default
    Admitted=False RouteNotAdmitted: host not in the allowed list of domains
    host: shop.elsewhere.test
    wildcardPolicy: None

== validate
  warning: Route shop/denied: router default refuses it: RouteNotAdmitted: host in list of denied domains
  warning: Route shop/outside: router default refuses it: RouteNotAdmitted: host not in the allowed list of domains
