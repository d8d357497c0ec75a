Lines of the access log by syslog
claims: IngressController.spec.logging.access.destination.syslog
mask: [0-9-]+T[0-9:.]+Z|:[0-9]{5}\b|duration\S*=\S+|[A-Z][a-z]{2} [ 0-9]{2} [0-9:]{8}|\[[0-9]+\]|sluice [0-9]+

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec:
  domain: apps.test
  logging:
    access:
      destination:
        type: Syslog
        syslog: {address: {{address server}}, port: {{port server}}, facility: local3, maxLength: 1000}
      httpLogFormat: "%ci %ST %HM %HP"
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: wrong, namespace: openshift-ingress-operator}
spec:
  domain: wrong.test
  logging: {access: {destination: {type: Syslog, syslog: {address: log.test, port: 514, facility: local9, maxLength: 10}}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: shop}
spec: {host: shop.test, to: {kind: Service, name: web}}

== backends
one: http for=shop/web
server: udp mirror

== requests
$ curl http://shop.test/a
  HTTP/1.1 200 OK
  one saw GET /a HTTP/1.1
  explain: Route shop/shop gets it, on 1 endpoint
$ await server
  server saw <158>… vm sluice…: 192.0.2.1 200 GET /a

== status
ingresscontroller openshift-ingress-operator/wrong
  Admitted=False InvalidManifest: story.yaml:18: spec.logging.access.destination.syslog.address: Invalid value: "log.test"; write the server's IP address, such as 10.0.0.7 (and 2 more)

== validate
  IngressController openshift-ingress-operator/wrong: spec.logging.access.destination.syslog.address: Invalid value: "log.test"; write the server's IP address, such as 10.0.0.7
  IngressController openshift-ingress-operator/wrong: spec.logging.access.destination.syslog.facility: Unsupported value: "local9"; write one of kern, user, mail, daemon, auth, syslog, lpr, news, uucp, cron, auth2, ftp, ntp, audit, alert, cron2, local0, local1, local2, local3, local4, local5, local6, local7
  IngressController openshift-ingress-operator/wrong: spec.logging.access.destination.syslog.maxLength: Invalid value: 10; write a number from 480 to 4096
