Hosts of roots
claims: Hosts Wildcards, Hosts Several roots, Hosts Other kinds, Hosts Closed hosts, Which objects Ingress class, HTTPProxy virtualhost.fqdn

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: wide, namespace: shop}
spec:
  virtualhost: {fqdn: "*.wide.test"}
  routes: [{conditions: [{prefix: /in}], services: [{name: proxy, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: exact, namespace: shop}
spec:
  virtualhost: {fqdn: Exact.wide.test}
  routes: [{services: [{name: exact, port: 80}]}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: wildcard, namespace: shop}
spec: {virtualhost: {fqdn: "*.roots.test"}, routes: [{match: /, services: [{name: ingressroute, port: 80}]}]}
---
# Two roots of one kind.
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: first, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"}
spec: {virtualhost: {fqdn: several.test}, routes: [{services: [{name: proxy, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: second, namespace: blog, creationTimestamp: "2025-02-01T00:00:00Z"}
spec: {virtualhost: {fqdn: several.test}, routes: [{services: [{name: proxy, port: 80}]}]}
---
# The same host in objects of three kinds.
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: kinds, namespace: shop, creationTimestamp: "2025-02-01T00:00:00Z"}
spec: {virtualhost: {fqdn: kinds.test}, routes: [{conditions: [{prefix: /p}], services: [{name: proxy, port: 80}]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: kinds, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"}
spec: {virtualhost: {fqdn: kinds.test}, routes: [{match: /i, services: [{name: ingressroute, port: 80}]}]}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: kinds, namespace: secret-team, creationTimestamp: "2025-03-01T00:00:00Z"}
spec: {host: kinds.test, to: {kind: Service, name: route}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: older, namespace: secret-team, creationTimestamp: "2024-03-01T00:00:00Z"}
spec: {host: older.test, to: {kind: Service, name: route}}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: younger, namespace: shop, creationTimestamp: "2025-02-01T00:00:00Z"}
spec: {virtualhost: {fqdn: older.test}, routes: [{services: [{name: proxy, port: 80}]}]}
---
# Another controller's.
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: foreign, namespace: shop, annotations: {projectcontour.io/ingress.class: nginx}}
spec: {virtualhost: {fqdn: foreign.test}, routes: [{services: [{name: proxy, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: field, namespace: shop}
spec: {ingressClassName: nginx, virtualhost: {fqdn: field.test}, routes: [{services: [{name: proxy, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: ours, namespace: shop, annotations: {kubernetes.io/ingress.class: contour}}
spec: {virtualhost: {fqdn: ours.test}, routes: [{services: [{name: proxy, port: 80}]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: foreign, namespace: shop, annotations: {contour.heptio.com/ingress.class: nginx}}
spec: {virtualhost: {fqdn: route.test}, routes: [{match: /, services: [{name: ingressroute, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: nameless, namespace: shop}
spec: {virtualhost: {}, routes: [{services: [{name: proxy, port: 80}]}]}

== backends
proxy: http for=shop/proxy
exact: http for=shop/exact
ingressroute: http for=shop/ingressroute
route: http for=secret-team/route
blog: http for=blog/proxy

== requests
$ curl http://a.wide.test/in
  HTTP/1.1 200 OK
  proxy saw GET /in HTTP/1.1
  explain: HTTPProxy shop/wide gets it, on 1 endpoint
# A host that is served is closed.
$ curl http://a.wide.test/out
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/wide#*.wide.test has *.wide.test, and no rule takes /out
    fix: give a route on HTTPProxy shop/wide#*.wide.test a rule that matches /out
$ curl http://a.b.wide.test/in
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: no route of router default has a.b.wide.test
    fix: create a Route with host a.b.wide.test
$ curl http://wide.test/in
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: no route of router default has wide.test
    fix: create a Route with host wide.test
$ curl http://exact.wide.test/in
  HTTP/1.1 200 OK
  exact saw GET /in HTTP/1.1
  explain: HTTPProxy shop/exact gets it, on 1 endpoint
$ curl http://EXACT.wide.test/in
  HTTP/1.1 200 OK
  exact saw GET /in HTTP/1.1
  explain: HTTPProxy shop/exact gets it, on 1 endpoint
$ curl http://a.roots.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: IngressRoute shop/wildcard claims it and is not served: default: Invalid: Spec.VirtualHost.Fqdn "*.roots.test" cannot use wildcards
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://several.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: HTTPProxy blog/second claims it and is not served: default: Invalid: fqdn "several.test" is used in multiple HTTPProxies: blog/second, shop/first
    fix: correct HTTPProxy blog/second as its condition says; `sluice validate` shows the place
$ curl http://kinds.test/i
  HTTP/1.1 200 OK
  ingressroute saw GET /i HTTP/1.1
  explain: IngressRoute shop/kinds gets it, on 1 endpoint
$ curl http://kinds.test/p
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute shop/kinds#kinds.test has kinds.test, and no rule takes /p
    fix: give a route on IngressRoute shop/kinds#kinds.test a rule that matches /p
$ curl http://older.test/
  HTTP/1.1 200 OK
  route saw GET / HTTP/1.1
  explain: Route secret-team/older gets it, on 1 endpoint
$ curl http://foreign.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: HTTPProxy shop/foreign claims it and is not served: it is of ingress class "nginx", which other controllers serve
    fix: write contour, or leave the class out
$ curl http://field.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: HTTPProxy shop/field claims it and is not served: it is of ingress class "nginx", which other controllers serve
    fix: write contour, or leave the class out
$ curl http://ours.test/
  HTTP/1.1 200 OK
  proxy saw GET / HTTP/1.1
  explain: HTTPProxy shop/ours gets it, on 1 endpoint
$ curl http://route.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: IngressRoute shop/foreign claims it and is not served: it is of ingress class "nginx", which other controllers serve
    fix: write contour, or leave the class out

== status
httpproxy shop/wide
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/exact
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
ingressroute shop/wildcard
  currentStatus: invalid
  description: Spec.VirtualHost.Fqdn "*.roots.test" cannot use wildcards
httpproxy shop/first
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    VirtualHostError=True DuplicateVhost: fqdn "several.test" is used in multiple HTTPProxies: blog/second, shop/first
httpproxy blog/second
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    VirtualHostError=True DuplicateVhost: fqdn "several.test" is used in multiple HTTPProxies: blog/second, shop/first
httpproxy shop/kinds
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    VirtualHostError=True HostAlreadyClaimed: IngressRoute kinds already exposes kinds.test and is older
ingressroute shop/kinds
  currentStatus: valid
  description: valid IngressRoute
route secret-team/kinds
  ingress: default
    Admitted=False HostAlreadyClaimed: an IngressRoute in another namespace holds kinds.test and is older than kinds
    host: kinds.test
    wildcardPolicy: None
httpproxy shop/younger
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    VirtualHostError=True HostAlreadyClaimed: a Route in another namespace holds older.test and is older than younger
httpproxy shop/foreign
  no status
httpproxy shop/field
  no status
httpproxy shop/ours
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
ingressroute shop/foreign
  no status
httpproxy shop/nameless
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    VirtualHostError=True FQDNNotSpecified: Spec.VirtualHost.Fqdn must be specified

== validate
  warning: IngressRoute shop/wildcard: default does not serve it: Invalid: Spec.VirtualHost.Fqdn "*.roots.test" cannot use wildcards
  warning: HTTPProxy shop/first: default does not serve it: Invalid: fqdn "several.test" is used in multiple HTTPProxies: blog/second, shop/first
  warning: HTTPProxy blog/second: default does not serve it: Invalid: fqdn "several.test" is used in multiple HTTPProxies: blog/second, shop/first
  warning: HTTPProxy shop/kinds: default does not serve it: Invalid: IngressRoute kinds already exposes kinds.test and is older
  warning: Route secret-team/kinds: router default refuses it: HostAlreadyClaimed: an IngressRoute in another namespace holds kinds.test and is older than kinds
  warning: HTTPProxy shop/younger: default does not serve it: Invalid: a Route in another namespace holds older.test and is older than younger
  warning: HTTPProxy shop/foreign: metadata.annotations[projectcontour.io/ingress.class]: it is of ingress class "nginx", which other controllers serve; write contour, or leave the class out
  warning: HTTPProxy shop/field: spec.ingressClassName: it is of ingress class "nginx", which other controllers serve; write contour, or leave the class out
  warning: IngressRoute shop/foreign: metadata.annotations[contour.heptio.com/ingress.class]: it is of ingress class "nginx", which other controllers serve; write contour, or leave the class out
  warning: HTTPProxy shop/nameless: default does not serve it: Invalid: Spec.VirtualHost.Fqdn must be specified
