Services of IngressRoutes and HTTPProxies that cannot be used, and includes without conditions

== manifests
apiVersion: v1
kind: Secret
metadata: {name: ca, namespace: shop}
type: Opaque
stringData: {ca.crt: {{ca}}}
---
apiVersion: v1
kind: Secret
metadata: {name: own, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert ended.test}}, tls.key: {{key ended.test}}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: unverified, namespace: shop}
spec:
  virtualhost: {fqdn: ended.test, tls: {secretName: own}}
  tcpproxy: {services: [{name: annotated, port: 443}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: unverified, namespace: shop}
spec:
  virtualhost: {fqdn: proxy.test, tls: {passthrough: true}}
  tcpproxy: {services: [{name: annotated, port: 443, protocol: tls}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: missing, namespace: shop}
spec:
  virtualhost: {fqdn: missing.test, tls: {passthrough: true}}
  tcpproxy: {services: [{name: nowhere, port: 443}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: routes, namespace: shop}
spec:
  virtualhost: {fqdn: routes.test}
  routes:
  - {match: /unverified, services: [{name: annotated, port: 443}]}
  - {match: /ca, services: [{name: annotated, port: 443, validation: {caSecret: nowhere, subjectName: a.test}}]}
  - {match: /good, services: [{name: annotated, port: 443, validation: {caSecret: ca, subjectName: a.test}}]}
  - {match: /plain, services: [{name: web, port: 80}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: root, namespace: shop}
spec:
  virtualhost: {fqdn: root.test}
  includes:
  - {name: first}
  - {name: second}
  - {name: third, conditions: [{prefix: /third}]}
  - {name: second, conditions: [{prefix: /third}]}
  routes:
  - {conditions: [{prefix: /h2c}], services: [{name: annotated, port: 80}, {name: web, port: 80, weight: 2}]}
  - {conditions: [{prefix: /two}], services: [{name: web, port: 80}, {name: annotated, port: 80, weight: 0}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: first, namespace: shop}
spec: {routes: [{conditions: [{prefix: /first}], services: [{name: web, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: second, namespace: shop}
spec: {routes: [{conditions: [{prefix: /second}], services: [{name: web, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: third, namespace: shop}
spec: {routes: [{services: [{name: web, port: 80}]}]}
---
apiVersion: v1
kind: Service
metadata:
  name: annotated
  namespace: shop
  annotations: {projectcontour.io/upstream-protocol.tls: "https, 444", contour.heptio.com/upstream-protocol.h2c: "80"}
spec: {ports: [{name: https, port: 443}, {name: web, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: annotated-1, namespace: shop, labels: {kubernetes.io/service-name: annotated}}
addressType: IPv4
endpoints: [{addresses: [10.2.0.1]}]
ports: [{name: https, port: 8443}, {name: web, port: 8080}]

== backends
one: http for=shop/web

== requests
$ curl http://root.test/first
$ curl http://root.test/second
$ curl http://root.test/third
$ curl http://routes.test/ca
