Who may be a subdomain's delegate
claims: Subdomain delegation the delegate, Status Paths

A delegate without a virtual host serves each name that leads to it; one with a virtual host serves one name.

== manifests
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: domain, namespace: corp, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  virtualhost: {fqdn: .corp.test}
  subdomains:
  - {subdomain: plain.corp.test, delegate: {name: plain, namespace: team}}
  - {subdomain: alias.corp.test, delegate: {name: plain, namespace: team}}
  - {subdomain: nameless.corp.test, delegate: {name: nameless, namespace: team}}
  - {subdomain: second.corp.test, delegate: {name: nameless, namespace: team}}
  - {subdomain: named.corp.test, delegate: {name: named, namespace: team}}
  - {subdomain: wrong.corp.test, delegate: {name: wrong, namespace: team}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: younger, namespace: corp, creationTimestamp: "2025-02-01T00:00:00Z"}
spec:
  virtualhost: {fqdn: .younger.test}
  subdomains: [{subdomain: nameless.younger.test, delegate: {name: nameless, namespace: team}}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: plain, namespace: team}
spec: {routes: [{match: /, services: [{name: plain, port: 80}]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: nameless, namespace: team}
spec: {virtualhost: {}, routes: [{match: /, services: [{name: nameless, port: 80}]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: named, namespace: team}
spec: {virtualhost: {fqdn: named.corp.test}, routes: [{match: /, services: [{name: named, port: 80}]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: wrong, namespace: team}
spec: {virtualhost: {fqdn: right.corp.test}, routes: [{match: /, services: [{name: named, port: 80}]}]}
---
# Nobody delegates to it.
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: many, namespace: team}
spec: {routes: [{match: /, services: [{name: plain, port: 80}]}]}

== backends
plain: http for=team/plain
nameless: http for=team/nameless
named: http for=team/named

== requests
$ curl http://plain.corp.test/
  HTTP/1.1 200 OK
  plain saw GET / HTTP/1.1
  explain: IngressRoute team/plain gets it, on 1 endpoint
$ curl http://alias.corp.test/
  HTTP/1.1 200 OK
  plain saw GET / HTTP/1.1
  explain: IngressRoute team/plain gets it, on 1 endpoint
$ curl http://nameless.corp.test/
  HTTP/1.1 200 OK
  nameless saw GET / HTTP/1.1
  explain: IngressRoute team/nameless gets it, on 1 endpoint
$ curl http://second.corp.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/domain claims it and is not served: default: Invalid: second.corp.test: delegate team/nameless has a virtualhost, and serves another name already
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://nameless.younger.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/younger claims it and is not served: default: Invalid: no valid subdomain (0 of 1 subdomains); nameless.younger.test: delegate team/nameless has a virtualhost, and serves another name already
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://named.corp.test/
  HTTP/1.1 200 OK
  named saw GET / HTTP/1.1
  explain: IngressRoute team/named gets it, on 1 endpoint
$ curl http://wrong.corp.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/domain claims it and is not served: default: Invalid: delegate team/wrong has fqdn right.corp.test, expected wrong.corp.test
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://right.corp.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute team/wrong claims it and is not served: default: Invalid: right.corp.test is within .corp.test owned by corp/domain and not delegated
    fix: correct the route as its condition says; `sluice validate` shows the place

== status
ingressroute corp/domain
  currentStatus: valid
  description: valid IngressRoute (4 of 6 subdomains); second.corp.test: delegate team/nameless has a virtualhost, and serves another name already; delegate team/wrong has fqdn right.corp.test, expected wrong.corp.test
ingressroute corp/younger
  currentStatus: invalid
  description: no valid subdomain (0 of 1 subdomains); nameless.younger.test: delegate team/nameless has a virtualhost, and serves another name already
ingressroute team/plain
  currentStatus: valid
  description: valid IngressRoute
  parents: corp/domain alias.corp.test -> team/plain
    IngressRoute corp/domain#alias.corp.test
    fqdn: alias.corp.test
    currentStatus: valid
    description: valid IngressRoute
  parents: corp/domain plain.corp.test -> team/plain
    IngressRoute corp/domain#plain.corp.test
    fqdn: plain.corp.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute team/nameless
  currentStatus: valid
  description: valid IngressRoute
  parents: corp/domain nameless.corp.test -> team/nameless
    IngressRoute corp/domain#nameless.corp.test
    fqdn: nameless.corp.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute team/named
  currentStatus: valid
  description: valid IngressRoute
  parents: corp/domain named.corp.test -> team/named
    IngressRoute corp/domain#named.corp.test
    fqdn: named.corp.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute team/wrong
  currentStatus: invalid
  description: right.corp.test is within .corp.test owned by corp/domain and not delegated
ingressroute team/many
  currentStatus: orphaned
  description: this IngressRoute is not part of a delegation chain from a root IngressRoute

== validate
  warning: IngressRoute corp/domain: default does not serve it: Invalid: delegate team/wrong has fqdn right.corp.test, expected wrong.corp.test
  warning: IngressRoute corp/domain: default does not serve it: Invalid: second.corp.test: delegate team/nameless has a virtualhost, and serves another name already
  warning: IngressRoute corp/younger: default does not serve it: Invalid: no valid subdomain (0 of 1 subdomains); nameless.younger.test: delegate team/nameless has a virtualhost, and serves another name already
  warning: IngressRoute team/wrong: default does not serve it: Invalid: right.corp.test is within .corp.test owned by corp/domain and not delegated
  warning: IngressRoute team/many: default does not serve it: Orphaned: this IngressRoute is not part of a delegation chain from a root IngressRoute
