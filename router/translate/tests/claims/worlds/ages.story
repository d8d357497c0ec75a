Of equally old objects the one that comes first by name has a host
flags: --allow-undelegated-subdomains

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec:
  domain: apps.test
  routeAdmission: {wildcardPolicy: WildcardsAllowed}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: b, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z", uid: "1"}
spec: {host: uid.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: a, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z", uid: "2"}
spec: {host: uid.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: dated, namespace: zoo, creationTimestamp: "2024-01-01T00:00:00Z"}
spec: {host: dated.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: undated, namespace: blog}
spec: {host: dated.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: wild, namespace: shop, creationTimestamp: "2024-01-01T00:00:01Z"}
spec: {host: any.wild.test, wildcardPolicy: Subdomain, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: below, namespace: blog, creationTimestamp: "2024-01-01T00:00:01Z"}
spec: {host: one.wild.test, to: {kind: Service, name: web}}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: b, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
spec: {virtualhost: {fqdn: proxy.test}, routes: [{services: [{name: web, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: a, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
spec: {virtualhost: {fqdn: proxy.test}, routes: [{services: [{name: web, port: 80}]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: domain, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
spec: {virtualhost: {fqdn: .corp.test}, subdomains: [{subdomain: www.corp.test, delegate: {name: www}}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: www, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
spec: {routes: [{match: /, services: [{name: web, port: 80}]}]}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: corp, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
spec: {host: www.corp.test, to: {kind: Service, name: web}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
spec:
  gatewayClassName: sluice
  listeners: [{name: web, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: b, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: [gateway.test, proxy.test, uid.test, old.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: a, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
spec:
  parentRefs: [{name: public}]
  hostnames: [gateway.test]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: old, namespace: shop, creationTimestamp: "2024-01-01T00:00:01Z"}
spec: {host: old.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web

== requests
$ curl http://uid.test/
$ curl http://dated.test/
$ curl http://one.wild.test/
$ curl http://proxy.test/
$ curl http://www.corp.test/
$ curl http://gateway.test/
$ curl http://old.test/
