Conditions that are not done
claims: HTTPProxy rejected notpresent, HTTPProxy rejected notexact, HTTPProxy rejected notcontains, HTTPProxy rejected treatMissingAsEmpty, HTTPProxy rejected exact, HTTPProxy rejected regex

An object with one is not served at all, so that no request falls to a route that was not meant for it. One of an include takes out that
include.

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: notpresent, namespace: shop}
spec:
  virtualhost: {fqdn: notpresent.test}
  routes: [{conditions: [{header: {name: X-A, notpresent: true}}], services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: notexact, namespace: shop}
spec:
  virtualhost: {fqdn: notexact.test}
  routes: [{conditions: [{header: {name: X-A, notexact: one}}], services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: notcontains, namespace: shop}
spec:
  virtualhost: {fqdn: notcontains.test}
  routes:
  - {conditions: [{header: {name: X-A, notcontains: one}}], services: [{name: web, port: 80}]}
  - {services: [{name: web, port: 80}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: missing, namespace: shop}
spec:
  virtualhost: {fqdn: missing.test}
  routes: [{conditions: [{header: {name: X-A, exact: one, treatMissingAsEmpty: true}}], services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: two, namespace: shop}
spec:
  virtualhost: {fqdn: two.test}
  routes: [{conditions: [{header: {name: X-A, exact: one}}, {header: {name: X-A, exact: two}}], services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: root, namespace: shop}
spec:
  virtualhost: {fqdn: root.test}
  includes:
  - {name: part, conditions: [{exact: /exact}]}
  - {name: part, conditions: [{regex: "/re.*"}]}
  - {name: part, conditions: [{prefix: /good}]}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: part, namespace: shop}
spec: {routes: [{services: [{name: part, port: 80}]}]}

== backends
web: http for=shop/web
part: http for=shop/part

== requests
$ curl http://notpresent.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/notpresent claims it and is not served: default: Invalid: spec.routes[0].conditions[0].header.notpresent is not supported; remove it
    fix: correct HTTPProxy shop/notpresent: as its status says; `sluice validate` shows the place
$ curl http://notexact.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/notexact claims it and is not served: default: Invalid: spec.routes[0].conditions[0].header.notexact is not supported; remove it
    fix: correct HTTPProxy shop/notexact: as its status says; `sluice validate` shows the place
$ curl -H "X-A: one" http://notcontains.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/notcontains claims it and is not served: default: Invalid: spec.routes[0].conditions[0].header.notcontains is not supported; remove it
    fix: correct HTTPProxy shop/notcontains: as its status says; `sluice validate` shows the place
$ curl http://missing.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/missing claims it and is not served: default: Invalid: spec.routes[0].conditions[0].header.treatMissingAsEmpty is not supported; remove it
    fix: correct HTTPProxy shop/missing: as its status says; `sluice validate` shows the place
$ curl -H "X-A: one" http://two.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/two claims it and is not served: default: Invalid: cannot specify duplicate header 'exact match' conditions in the same route: x-a
    fix: correct HTTPProxy shop/two: as its status says; `sluice validate` shows the place
$ curl http://root.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/root claims it and is not served: default: Invalid: include: exact conditions are not allowed in includes; write a prefix; include: regex conditions are not allowed in includes; write a prefix
    fix: correct HTTPProxy shop/root: as its status says; `sluice validate` shows the place
$ curl http://root.test/exact
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/root claims it and is not served: default: Invalid: include: exact conditions are not allowed in includes; write a prefix; include: regex conditions are not allowed in includes; write a prefix
    fix: correct HTTPProxy shop/root: as its status says; `sluice validate` shows the place
$ curl http://root.test/regex
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/root claims it and is not served: default: Invalid: include: exact conditions are not allowed in includes; write a prefix; include: regex conditions are not allowed in includes; write a prefix
    fix: correct HTTPProxy shop/root: as its status says; `sluice validate` shows the place
$ curl http://root.test/good
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/root claims it and is not served: default: Invalid: include: exact conditions are not allowed in includes; write a prefix; include: regex conditions are not allowed in includes; write a prefix
    fix: correct HTTPProxy shop/root: as its status says; `sluice validate` shows the place

== status
httpproxy shop/notpresent
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].conditions[0].header.notpresent is not supported; remove it
httpproxy shop/notexact
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].conditions[0].header.notexact is not supported; remove it
httpproxy shop/notcontains
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].conditions[0].header.notcontains is not supported; remove it
httpproxy shop/missing
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].conditions[0].header.treatMissingAsEmpty is not supported; remove it
httpproxy shop/two
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    RouteError=True HeaderMatchConditionsNotValid: cannot specify duplicate header 'exact match' conditions in the same route: x-a
httpproxy shop/root
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    IncludeError=True PathMatchConditionsNotValid: include: exact conditions are not allowed in includes; write a prefix
    IncludeError=True PathMatchConditionsNotValid: include: regex conditions are not allowed in includes; write a prefix
httpproxy shop/part
  currentStatus: orphaned
  description: this HTTPProxy is not part of a delegation chain from a root HTTPProxy
  Valid=False Orphaned: this HTTPProxy is not part of a delegation chain from a root HTTPProxy
    Orphaned=True: this HTTPProxy is not part of a delegation chain from a root HTTPProxy

== validate
  warning: HTTPProxy shop/notpresent: default does not serve it: Invalid: spec.routes[0].conditions[0].header.notpresent is not supported; remove it
  warning: HTTPProxy shop/notexact: default does not serve it: Invalid: spec.routes[0].conditions[0].header.notexact is not supported; remove it
  warning: HTTPProxy shop/notcontains: default does not serve it: Invalid: spec.routes[0].conditions[0].header.notcontains is not supported; remove it
  warning: HTTPProxy shop/missing: default does not serve it: Invalid: spec.routes[0].conditions[0].header.treatMissingAsEmpty is not supported; remove it
  warning: HTTPProxy shop/two: default does not serve it: Invalid: cannot specify duplicate header 'exact match' conditions in the same route: x-a
  warning: HTTPProxy shop/root: default does not serve it: Invalid: include: exact conditions are not allowed in includes; write a prefix; include: regex conditions are not allowed in includes; write a prefix
  warning: HTTPProxy shop/part: default does not serve it: Orphaned: this HTTPProxy is not part of a delegation chain from a root HTTPProxy
