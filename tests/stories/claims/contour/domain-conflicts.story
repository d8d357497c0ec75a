Who has a name in a domain
claims: Subdomain delegation a root of a delegated name, Subdomain delegation a root of a name that is not delegated, Subdomain delegation two roots of one domain, Subdomain delegation a domain inside of a domain, Subdomain delegation an invalid root

== manifests
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: domain, namespace: corp}
spec:
  virtualhost: {fqdn: .corp.test}
  subdomains:
  - {subdomain: www.corp.test, delegate: {name: part, namespace: team}}
  - {subdomain: both.corp.test, delegate: {name: part, namespace: team}}
  - {subdomain: .in.corp.test, delegate: {name: inner, namespace: team}}
  - {subdomain: x.own.corp.test, delegate: {name: part, namespace: team}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: part, namespace: team}
spec: {routes: [{match: /, services: [{name: web, port: 80}]}]}
---
# A root of a name that the domain delegates, and one of a name that it does not.
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: both, namespace: other}
spec: {virtualhost: {fqdn: both.corp.test}, routes: [{match: /, services: [{name: web, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: stranger, namespace: other}
spec: {virtualhost: {fqdn: stranger.corp.test}, routes: [{services: [{name: web, port: 80}]}]}
---
# A domain inside, which is delegated; one of the same namespace; one of a stranger.
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: inner, namespace: team}
spec:
  virtualhost: {fqdn: .in.corp.test}
  subdomains: [{subdomain: www.in.corp.test, delegate: {name: part}}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: own, namespace: corp}
spec:
  virtualhost: {fqdn: .own.corp.test}
  subdomains: [{subdomain: www.own.corp.test, delegate: {name: part, namespace: team}}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: theirs, namespace: other}
spec:
  virtualhost: {fqdn: .their.corp.test}
  subdomains: [{subdomain: www.their.corp.test, delegate: {name: part, namespace: team}}]
---
# Two roots of one domain.
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: first, namespace: corp, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  virtualhost: {fqdn: .two.test}
  subdomains: [{subdomain: www.two.test, delegate: {name: orphan, namespace: team}}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: second, namespace: other, creationTimestamp: "2025-02-01T00:00:00Z"}
spec:
  virtualhost: {fqdn: .two.test}
  subdomains: [{subdomain: shop.two.test, delegate: {name: orphan, namespace: team}}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: orphan, namespace: team}
spec: {routes: [{match: /, services: [{name: web, port: 80}]}]}

== backends
team: http for=team/web
other: http for=other/web

== requests
$ curl http://www.corp.test/
  HTTP/1.1 200 OK
  team saw GET / HTTP/1.1
  explain: IngressRoute team/part gets it, on 1 endpoint
$ curl http://both.corp.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/domain claims it and is not served: default: Invalid: fqdn "both.corp.test" is used in multiple IngressRoutes: corp/domain, other/both
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://stranger.corp.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy other/stranger claims it and is not served: default: Invalid: stranger.corp.test is within .corp.test owned by corp/domain and not delegated
    fix: correct HTTPProxy other/stranger as its condition says; `sluice validate` shows the place
$ curl http://www.in.corp.test/
  HTTP/1.1 200 OK
  team saw GET / HTTP/1.1
  explain: IngressRoute team/part gets it, on 1 endpoint
$ curl http://www.own.corp.test/
  HTTP/1.1 200 OK
  team saw GET / HTTP/1.1
  explain: IngressRoute team/part gets it, on 1 endpoint
$ curl http://x.own.corp.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/domain claims it and is not served: default: Invalid: x.own.corp.test is within .own.corp.test owned by corp/own and not delegated
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://www.their.corp.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute other/theirs claims it and is not served: default: Invalid: .their.corp.test is within .corp.test owned by corp/domain and not delegated
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://www.two.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/first claims it and is not served: default: Invalid: fqdn ".two.test" is used in multiple IngressRoutes: corp/first, other/second
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://shop.two.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute other/second claims it and is not served: default: Invalid: fqdn ".two.test" is used in multiple IngressRoutes: corp/first, other/second
    fix: correct the route as its condition says; `sluice validate` shows the place

== status
ingressroute corp/domain
  currentStatus: valid
  description: valid IngressRoute (2 of 4 subdomains); fqdn "both.corp.test" is used in multiple IngressRoutes: corp/domain, other/both; x.own.corp.test is within .own.corp.test owned by corp/own and not delegated
ingressroute team/part
  currentStatus: valid
  description: valid IngressRoute (3 of 4 paths)
  parents: corp/domain both.corp.test -> team/part
    IngressRoute corp/domain#both.corp.test
    fqdn: both.corp.test
    currentStatus: invalid
    description: fqdn "both.corp.test" is used in multiple IngressRoutes: corp/domain, other/both
  parents: corp/domain www.corp.test -> team/part
    IngressRoute corp/domain#www.corp.test
    fqdn: www.corp.test
    currentStatus: valid
    description: valid IngressRoute
  parents: corp/own www.own.corp.test -> team/part
    IngressRoute corp/own#www.own.corp.test
    fqdn: www.own.corp.test
    currentStatus: valid
    description: valid IngressRoute
  parents: team/inner www.in.corp.test -> team/part
    IngressRoute team/inner#www.in.corp.test
    fqdn: www.in.corp.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute other/both
  currentStatus: invalid
  description: fqdn "both.corp.test" is used in multiple IngressRoutes: corp/domain, other/both
httpproxy other/stranger
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    VirtualHostError=True NotDelegated: stranger.corp.test is within .corp.test owned by corp/domain and not delegated
ingressroute team/inner
  currentStatus: valid
  description: valid IngressRoute (1 of 1 subdomains)
ingressroute corp/own
  currentStatus: valid
  description: valid IngressRoute (1 of 1 subdomains)
ingressroute other/theirs
  currentStatus: invalid
  description: .their.corp.test is within .corp.test owned by corp/domain and not delegated
ingressroute corp/first
  currentStatus: invalid
  description: fqdn ".two.test" is used in multiple IngressRoutes: corp/first, other/second
ingressroute other/second
  currentStatus: invalid
  description: fqdn ".two.test" is used in multiple IngressRoutes: corp/first, other/second
ingressroute team/orphan
  currentStatus: orphaned
  description: this IngressRoute is not part of a delegation chain from a root IngressRoute

== validate
  warning: IngressRoute corp/domain: default does not serve it: Invalid: fqdn "both.corp.test" is used in multiple IngressRoutes: corp/domain, other/both
  warning: IngressRoute corp/domain: default does not serve it: Invalid: x.own.corp.test is within .own.corp.test owned by corp/own and not delegated
  warning: IngressRoute team/part: IngressRoute corp/domain does not serve it: Invalid: fqdn "both.corp.test" is used in multiple IngressRoutes: corp/domain, other/both
  warning: IngressRoute other/both: default does not serve it: Invalid: fqdn "both.corp.test" is used in multiple IngressRoutes: corp/domain, other/both
  warning: HTTPProxy other/stranger: default does not serve it: Invalid: stranger.corp.test is within .corp.test owned by corp/domain and not delegated
  warning: IngressRoute other/theirs: default does not serve it: Invalid: .their.corp.test is within .corp.test owned by corp/domain and not delegated
  warning: IngressRoute corp/first: default does not serve it: Invalid: fqdn ".two.test" is used in multiple IngressRoutes: corp/first, other/second
  warning: IngressRoute other/second: default does not serve it: Invalid: fqdn ".two.test" is used in multiple IngressRoutes: corp/first, other/second
  warning: IngressRoute team/orphan: default does not serve it: Orphaned: this IngressRoute is not part of a delegation chain from a root IngressRoute
