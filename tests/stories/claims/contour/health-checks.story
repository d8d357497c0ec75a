Endpoints that are ill get nothing
claims: IngressRoute healthCheck, HTTPProxy healthCheckPolicy, HTTPProxy expectedStatuses, HTTPProxy rejected healthPort, HTTPProxy rejected port
seen: user-agent

== manifests
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: health, namespace: shop}
spec:
  virtualhost: {fqdn: route.test}
  routes:
  - match: /
    services:
    - name: pair
      port: 80
      healthCheck: {path: /healthz, intervalSeconds: 1, timeoutSeconds: 1, unhealthyThresholdCount: 1, healthyThresholdCount: 1}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: health, namespace: shop}
spec:
  virtualhost: {fqdn: proxy.test}
  routes:
  - services: [{name: teapots, port: 80}]
    healthCheckPolicy: {path: /healthz, intervalSeconds: 1, timeoutSeconds: 1, unhealthyThresholdCount: 1, healthyThresholdCount: 1, expectedStatuses: [{start: 400, end: 450}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: other-port, namespace: shop}
spec:
  virtualhost: {fqdn: port.test}
  routes:
  - services: [{name: pair, port: 80, healthPort: 8080}]
    healthCheckPolicy: {path: /healthz}

== backends
well: http for=shop/pair
ill: http for=shop/pair status=503
teapot: http for=shop/teapots status=418
fine: http for=shop/teapots

== requests
# The second one comes when the first is answered.
$ checks ill 2
  2 connections within 3 s
$ checks well 2
  2 connections within 3 s
$ x6 curl http://route.test/
  6 × HTTP/1.1 200 OK from well
  explain: IngressRoute shop/health gets it, on 1 endpoint
$ checks fine 2
  2 connections within 3 s
$ checks teapot 2
  2 connections within 3 s
$ x6 curl http://proxy.test/
  6 × HTTP/1.1 418 I'm a teapot from teapot
  explain: HTTPProxy shop/health gets it, on 1 endpoint
$ curl http://port.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: HTTPProxy shop/other-port claims it and is not served: default: Invalid: spec.routes[0].services[0].healthPort is not supported; remove it; the port that is served is checked
    fix: correct HTTPProxy shop/other-port: as its status says; `sluice validate` shows the place

== status
ingressroute shop/health
  currentStatus: valid
  description: valid IngressRoute
httpproxy shop/health
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/other-port
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].services[0].healthPort is not supported; remove it; the port that is served is checked

== validate
  warning: HTTPProxy shop/other-port: default does not serve it: Invalid: spec.routes[0].services[0].healthPort is not supported; remove it; the port that is served is checked
