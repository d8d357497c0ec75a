Passthrough endpoints are told the client's address
claims: router.sluice.dev/proxy-protocol

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: told, namespace: shop, annotations: {router.sluice.dev/proxy-protocol: v2}}
spec:
  host: told.apps.test
  to: {kind: Service, name: told}
  tls: {termination: passthrough}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: edge, namespace: shop, annotations: {router.sluice.dev/proxy-protocol: v2}}
spec:
  host: edge.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: first, namespace: shop, annotations: {router.sluice.dev/proxy-protocol: v1}}
spec:
  host: first.apps.test
  to: {kind: Service, name: tls}
  tls: {termination: passthrough}

== backends
told: https cert=told.apps.test proxied for=shop/told:443
tls: https cert=first.apps.test for=shop/tls:443
web: http for=shop/web

== requests
$ curl https://told.apps.test/
  HTTP/1.1 200 OK
  told saw GET / HTTP/1.1
    [PROXY version 2: 192.0.2.1 to 10.0.0.1:443]
    [tls TLSv1_3, SNI told.apps.test, ALPN http/1.1]
  explain: Route shop/told gets the TLS stream as it is, on 1 endpoint
$ curl --interface 198.51.100.7 https://told.apps.test/
  HTTP/1.1 200 OK
  told saw GET / HTTP/1.1
    [PROXY version 2: 198.51.100.7 to 10.0.0.1:443]
    [tls TLSv1_3, SNI told.apps.test, ALPN http/1.1]
  explain: Route shop/told gets the TLS stream as it is, on 1 endpoint
$ curl https://first.apps.test/
  HTTP/1.1 200 OK
  tls saw GET / HTTP/1.1
    [tls TLSv1_3, SNI first.apps.test, ALPN http/1.1]
  explain: Route shop/first gets the TLS stream as it is, on 1 endpoint
$ curl http://edge.apps.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: Route shop/edge gets it, on 1 endpoint

== validate
  warning: Route shop/edge: metadata.annotations[router.sluice.dev/proxy-protocol]: is only for passthrough routes, ignored; remove it, or write spec.tls.termination: passthrough; endpoints of other routes learn the client's address from X-Forwarded-For
  warning: Route shop/first: metadata.annotations[router.sluice.dev/proxy-protocol]: Unsupported value: "v1", ignored; write v2, or remove it
