Fields without meaning, and fields without effect
claims: IngressController.spec.tuningOptions.threadCount, IngressController.spec.tuningOptions.reloadInterval, IngressController.spec.tuningOptions.configurationManagement, IngressController.spec.replicas, IngressController.spec.nodePlacement, IngressController.spec.haproxyVersion, IngressController.spec.unsupportedConfigOverrides, ingress.operator.openshift.io/default-enable-http2, ingress.operator.openshift.io/hard-stop-after

The router serves all the same. A field that nobody knows is warned of.

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata:
  name: default
  namespace: openshift-ingress-operator
  annotations:
    ingress.operator.openshift.io/default-enable-http2: "false"
    ingress.operator.openshift.io/hard-stop-after: 30m
spec:
  domain: apps.test
  replicas: 2
  nodePlacement: {nodeSelector: {matchLabels: {node: edge}}}
  haproxyVersion: "2.8"
  unsupportedConfigOverrides: {maxDynamicServers: 5}
  tuningOptions: {threadCount: 8, reloadInterval: 15s, configurationManagement: Dynamic, serverFinTimeout: 5s}
  tuningOption: {threadCount: 8}
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata:
  name: fine
  namespace: openshift-ingress-operator
  annotations: {ingress.operator.openshift.io/default-enable-http2: "true"}
spec:
  domain: fine.test
  replicas: 2
  tuningOptions: {threadCount: 8}
  unsupportedConfigOverrides: {}
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec:
  host: shop.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert shop.test}}, key: {{key shop.test}}}

== backends
one: http for=shop/web

== requests
$ curl https://shop.test/
  HTTP/2 200
  one saw GET / HTTP/1.1
  explain: Route shop/shop gets it, on 1 endpoint

== status
ingresscontroller openshift-ingress-operator/default
  domain: apps.test
  Admitted=True Valid
  Available=True
  Degraded=True FieldsWithoutEffect: these fields have no effect yet: spec.tuningOptions.serverFinTimeout, metadata.annotations[ingress.operator.openshift.io/default-enable-http2], metadata.annotations[ingress.operator.openshift.io/hard-stop-after], spec.unsupportedConfigOverrides
ingresscontroller openshift-ingress-operator/fine
  domain: fine.test
  Admitted=True Valid
  Available=True
  Degraded=False

== validate
  warning: IngressController openshift-ingress-operator/default: metadata.annotations[ingress.operator.openshift.io/default-enable-http2]: has no effect: Sluice does not act on this field yet
  warning: IngressController openshift-ingress-operator/default: metadata.annotations[ingress.operator.openshift.io/hard-stop-after]: has no effect: Sluice does not act on this field yet
  warning: IngressController openshift-ingress-operator/default: spec.unsupportedConfigOverrides: has no effect: Sluice does not act on this field yet
  warning: IngressController openshift-ingress-operator/default: spec.tuningOptions.serverFinTimeout: has no effect: Sluice does not act on this field yet
  warning: IngressController openshift-ingress-operator/default: spec.tuningOption: unknown field, ignored; remove it, or check its spelling
