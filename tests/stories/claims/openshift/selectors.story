Which Routes a router serves
claims: IngressController.spec.namespaceSelector, IngressController.spec.routeSelector, IngressController.spec.domain, IngressController.spec.endpointPublishingStrategy.hostNetwork.httpPort, IngressController.spec.endpointPublishingStrategy.hostNetwork.httpsPort, IngressController.spec.endpointPublishingStrategy.hostNetwork.statsPort, IngressController.spec.endpointPublishingStrategy.type, IngressController.spec.endpointPublishingStrategy.loadBalancer

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  domain: apps.test
  routeSelector: {matchExpressions: [{key: shard, operator: NotIn, values: [inside]}]}
  endpointPublishingStrategy: {type: LoadBalancerService, loadBalancer: {scope: External}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: inside, namespace: openshift-ingress-operator, creationTimestamp: "2025-01-02T00:00:00Z"}
spec:
  domain: inside.test
  routeSelector: {matchLabels: {shard: inside}}
  namespaceSelector: {matchLabels: {team: shop}}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443, statsPort: 1937}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: same-port, namespace: openshift-ingress-operator, creationTimestamp: "2025-01-03T00:00:00Z"}
spec:
  domain: other.test
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 9443}}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: same-domain, namespace: openshift-ingress-operator, creationTimestamp: "2025-01-04T00:00:00Z"}
spec:
  domain: apps.test
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 7080, httpsPort: 7443}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: shop}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: outside, namespace: shop}
spec: {subdomain: outside, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: inside, namespace: shop, labels: {shard: inside}}
spec: {subdomain: shop, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: theirs, namespace: blog, labels: {shard: inside}}
spec: {subdomain: blog, to: {kind: Service, name: web}}

== backends
shop: http for=shop/web
blog: http for=blog/web

== requests
$ curl http://outside.apps.test/
  HTTP/1.1 200 OK
  shop saw GET / HTTP/1.1
  explain: Route shop/outside gets it, on 1 endpoint
$ curl http://shop.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: no route of router default has shop.apps.test
    fix: create a Route with host shop.apps.test
$ curl http://shop.inside.test:8080/
  HTTP/1.1 200 OK
  shop saw GET / HTTP/1.1
  explain: Route shop/inside gets it, on 1 endpoint
$ curl http://outside.inside.test:8080/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: no route of router inside has outside.inside.test
    fix: create a Route with host outside.inside.test
# Of a namespace without the label.
$ curl http://blog.inside.test:8080/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: no route of router inside has blog.inside.test
    fix: create a Route with host blog.inside.test
$ curl http://blog.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: no route of router default has blog.apps.test
    fix: create a Route with host blog.apps.test
$ curl http://shop.other.test:7080/
  no connection
  explain: no router listens on port 7080 for http
    fix: ask on port 80 or 8080 for http

== status
route shop/outside
  ingress: default
    Admitted=True
    host: outside.apps.test
    wildcardPolicy: None
route shop/inside
  ingress: inside
    Admitted=True
    host: shop.inside.test
    wildcardPolicy: None
route blog/theirs
  no status
ingresscontroller openshift-ingress-operator/default
  domain: apps.test
  routeSelector:
    matchExpressions:
      key: shard
      operator: NotIn
      values:
  Admitted=True Valid
  Available=True
  Degraded=False
ingresscontroller openshift-ingress-operator/inside
  domain: inside.test
  namespaceSelector:
    matchLabels:
      team: shop
  routeSelector:
    matchLabels:
      shard: inside
  Admitted=True Valid
  Available=True
  Degraded=True FieldsWithoutEffect: these fields have no effect yet: spec.endpointPublishingStrategy.hostNetwork.statsPort
ingresscontroller openshift-ingress-operator/same-port
  domain: other.test
  Admitted=True Valid
  Available=False PortConflict: port 8080 is that of IngressController "inside", which is older; set spec.endpointPublishingStrategy.hostNetwork.httpPort and httpsPort
  Degraded=True PortConflict: port 8080 is that of IngressController "inside", which is older; set spec.endpointPublishingStrategy.hostNetwork.httpPort and httpsPort
ingresscontroller openshift-ingress-operator/same-domain
  domain: apps.test
  Admitted=False Invalid: domain "apps.test" is that of IngressController "default", which is older; a domain cannot be changed: delete this one and create it anew with another
  Available=False NotAdmitted: the IngressController is not admitted

== validate
  warning: IngressController openshift-ingress-operator/inside: spec.endpointPublishingStrategy.hostNetwork.statsPort: has no effect: Sluice does not act on this field yet
  warning: IngressController openshift-ingress-operator/same-port: PortConflict: port 8080 is that of IngressController "inside", which is older; set spec.endpointPublishingStrategy.hostNetwork.httpPort and httpsPort
  warning: IngressController openshift-ingress-operator/same-domain: Invalid: domain "apps.test" is that of IngressController "default", which is older; a domain cannot be changed: delete this one and create it anew with another
  warning: Route blog/theirs: no router selects it: its labels are not those of spec.routeSelector of IngressController default, and 1 more do not select it; correct the labels or the selector
