Hosts that are written, and hosts that are made
claims: Route.spec.host, Route.spec.subdomain, openshift.io/host.generated, route.openshift.io/allow-non-dns-compliant-host
flags: --cluster-domain cluster.test

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: written, namespace: shop}
spec: {host: written.example.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: made.here, namespace: shop}
spec: {to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: below, namespace: shop}
spec: {subdomain: a.b, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: both, namespace: shop}
spec: {host: both.example.test, subdomain: both, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: upper, namespace: shop}
spec: {host: Upper.example.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: long, namespace: shop, annotations: {route.openshift.io/allow-non-dns-compliant-host: "true"}}
spec: {host: {{filler 64}}.example.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ curl http://written.example.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/written gets it, on 1 endpoint
# Upper and lower case are the same in a request, a dot at the end and a port are nothing.
$ curl -H 'Host: WRITTEN.example.test.:80' http://written.example.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/written gets it, on 1 endpoint
$ curl http://made-here-shop.cluster.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/made.here gets it, on 1 endpoint
$ curl http://a.b.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/below gets it, on 1 endpoint
$ curl http://both.example.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/both gets it, on 1 endpoint
$ curl http://both.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: no route of router default has both.apps.test
    fix: create a Route with host both.apps.test
$ curl http://upper.example.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: Route shop/upper claims it and is not served: InvalidManifest: story.yaml:24: spec.host: Invalid value: "Upper.example.test": label "Upper" is not a valid DNS label; use lower-case letters, digits and '-', beginning and ending with a letter or digit (RFC 1123)
    fix: correct the route as its condition says; `sluice validate` shows the place

== status
route shop/written
  ingress: default
    Admitted=True
    host: written.example.test
    wildcardPolicy: None
route shop/made.here
  ingress: default
    Admitted=True
    host: made-here-shop.cluster.test
    wildcardPolicy: None
route shop/below
  ingress: default
    Admitted=True
    host: a.b.apps.test
    wildcardPolicy: None
route shop/both
  ingress: default
    Admitted=True
    host: both.example.test
    wildcardPolicy: None
route shop/upper
  ingress: default
    Admitted=False InvalidManifest: story.yaml:24: spec.host: Invalid value: "Upper.example.test": label "Upper" is not a valid DNS label; use lower-case letters, digits and '-', beginning and ending with a letter or digit (RFC 1123)
    host: Upper.example.test
    wildcardPolicy: None
route shop/long
  ingress: default
    Admitted=False InvalidHost: host name validation errors: label "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" has 64 bytes; use at most 63
    host: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.example.test
    wildcardPolicy: None

== validate
  warning: Route shop/both: spec.subdomain: is ignored, because spec.host is set; remove one of the two
  Route shop/upper: spec.host: Invalid value: "Upper.example.test": label "Upper" is not a valid DNS label; use lower-case letters, digits and '-', beginning and ending with a letter or digit (RFC 1123)
  warning: Route shop/long: router default refuses it: InvalidHost: host name validation errors: label "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" has 64 bytes; use at most 63
