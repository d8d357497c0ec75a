Work on header fields
claims: Route.spec.httpHeaders.actions, IngressController.spec.httpHeaders.actions
seen: x-first, x-api, x-client, x-gone
answer: x-answer, x-both, server

Of requests the router's own come first, of responses last: what both set is the Route's towards endpoints, and the router's
towards clients.

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec:
  domain: apps.test
  httpHeaders:
    actions:
      request:
      - {name: X-First, action: {type: Set, set: {value: router}}}
      - {name: X-Api, action: {type: Set, set: {value: "router"}}}
      response:
      - {name: X-Both, action: {type: Set, set: {value: router}}}
      - {name: Server, action: {type: Delete}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec:
  host: shop.apps.test
  to: {kind: Service, name: web}
  httpHeaders:
    actions:
      request:
      - {name: X-Api, action: {type: Set, set: {value: "route %[req.hdr(X-Client),lower]"}}}
      - {name: X-Gone, action: {type: Delete}}
      response:
      - {name: X-Both, action: {type: Set, set: {value: route}}}
      - {name: X-Answer, action: {type: Set, set: {value: "%[res.hdr(X-Answer),base64] 100%%"}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: cookie, namespace: shop}
spec:
  host: cookie.apps.test
  to: {kind: Service, name: web}
  httpHeaders: {actions: {request: [{name: Cookie, action: {type: Delete}}]}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: through, namespace: shop}
spec:
  host: through.apps.test
  to: {kind: Service, name: web}
  tls: {termination: passthrough}
  httpHeaders: {actions: {request: [{name: X-Api, action: {type: Delete}}]}}

== backends
one: http "header=X-Answer: hello" "header=Server: mine" for=shop/web

== requests
$ curl -H 'X-Client: ABC' -H 'X-Gone: 1' http://shop.apps.test/
  HTTP/1.1 200 OK
    x-answer: aGVsbG8= 100%
    x-both: router
  one saw GET / HTTP/1.1
    x-client: ABC
    x-api: route abc
    x-first: router
  explain: Route shop/shop gets it, on 1 endpoint
$ curl http://cookie.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: Route shop/cookie claims it and is not served: InvalidManifest: story.yaml:36: spec.httpHeaders.actions.request[0].name: Forbidden: "Cookie" cannot be changed here: a router's session cookies would be lost; remove the action
    fix: correct the route as its condition says; `sluice validate` shows the place

== status
route shop/cookie
  ingress: default
    Admitted=False InvalidManifest: story.yaml:36: spec.httpHeaders.actions.request[0].name: Forbidden: "Cookie" cannot be changed here: a router's session cookies would be lost; remove the action
    host: cookie.apps.test
    wildcardPolicy: None

== validate
  Route shop/cookie: spec.httpHeaders.actions.request[0].name: Forbidden: "Cookie" cannot be changed here: a router's session cookies would be lost; remove the action
  Route shop/through: spec.httpHeaders: Forbidden: passthrough routes see no requests and change no headers; remove it, or use edge
