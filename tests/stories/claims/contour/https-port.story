Clear text is redirected to the port for HTTPS that its client can reach
claims: HTTPProxy permitInsecure, IngressRoute permitInsecure

A client that names the router's own port for clear text has no load balancer in front of it that maps ports, so the redirect names
the router's port for HTTPS. A redirect that the object writes itself names the port that is written there.

== manifests
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec:
  domain: apps.test
  endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}
---
apiVersion: v1
kind: Secret
metadata: {name: tls, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert *.shop.test}}, tls.key: {{key *.shop.test}}}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: proxy, namespace: shop}
spec:
  virtualhost: {fqdn: proxy.shop.test, tls: {secretName: tls}}
  routes:
  - {services: [{name: web, port: 80}]}
  - {conditions: [{prefix: /clear}], permitInsecure: true, services: [{name: web, port: 80}]}
  - {conditions: [{prefix: /written}], permitInsecure: true, requestRedirectPolicy: {scheme: https}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: route, namespace: shop}
spec:
  virtualhost: {fqdn: route.shop.test, tls: {secretName: tls}}
  routes: [{match: /, services: [{name: web, port: 80}]}]

== backends
web: http for=shop/web

== requests
$ curl http://proxy.shop.test:8080/x?y=1
  HTTP/1.1 301 Moved Permanently
    location: https://proxy.shop.test:8443/x?y=1
  explain: HTTPProxy shop/proxy redirects to https://{host}{path} with 301
$ curl -L http://proxy.shop.test:8080/x?y=1
! the client follows the redirect
  HTTP/2 200
  web saw GET /x?y=1 HTTP/1.1
  explain: HTTPProxy shop/proxy redirects to https://{host}{path} with 301
$ curl http://proxy.shop.test:8080/clear
  HTTP/1.1 200 OK
  web saw GET /clear HTTP/1.1
  explain: HTTPProxy shop/proxy gets it, on 1 endpoint
$ curl http://proxy.shop.test:8080/written
  HTTP/1.1 302 Found
    location: https://proxy.shop.test/written
  explain: HTTPProxy shop/proxy redirects to https://{host}{path} with 302
$ curl http://route.shop.test:8080/x?y=1
  HTTP/1.1 301 Moved Permanently
    location: https://route.shop.test:8443/x?y=1
  explain: IngressRoute shop/route redirects to https://{host}{path} with 301
$ curl -L http://route.shop.test:8080/x?y=1
! the client follows the redirect
  HTTP/2 200
  web saw GET /x?y=1 HTTP/1.1
  explain: IngressRoute shop/route redirects to https://{host}{path} with 301
# As a load balancer sends it whose port 80 is the router's 8080.
$ curl -H "Host: proxy.shop.test" http://proxy.shop.test:8080/x
  HTTP/1.1 301 Moved Permanently
    location: https://proxy.shop.test/x
  explain: HTTPProxy shop/proxy redirects to https://{host}{path} with 301
$ curl -H "Host: proxy.shop.test:80" http://proxy.shop.test:8080/x
  HTTP/1.1 301 Moved Permanently
    location: https://proxy.shop.test/x
  explain: HTTPProxy shop/proxy redirects to https://{host}{path} with 301
$ curl -H "Host: route.shop.test" http://route.shop.test:8080/x
  HTTP/1.1 301 Moved Permanently
    location: https://route.shop.test/x
  explain: IngressRoute shop/route redirects to https://{host}{path} with 301

== status
httpproxy shop/proxy
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
ingressroute shop/route
  currentStatus: valid
  description: valid IngressRoute
