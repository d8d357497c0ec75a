Where TLS ends, and what clear text gets
claims: Route.spec.tls.termination, Route.spec.tls.insecureEdgeTerminationPolicy

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: plain, namespace: shop}
spec: {host: plain.apps.test, to: {kind: Service, name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: edge, namespace: shop}
spec:
  host: edge.apps.test
  to: {kind: Service, name: web}
  tls: {termination: edge, certificate: {{cert edge.apps.test}}, key: {{key edge.apps.test}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: both, namespace: shop}
spec:
  host: both.apps.test
  to: {kind: Service, name: web}
  tls: {insecureEdgeTerminationPolicy: Allow, certificate: {{cert both.apps.test}}, key: {{key both.apps.test}}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: sent, namespace: shop}
spec:
  host: sent.apps.test
  path: /in
  to: {kind: Service, name: web}
  tls:
    termination: edge
    insecureEdgeTerminationPolicy: Redirect
    certificate: {{cert sent.apps.test}}
    key: {{key sent.apps.test}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: through, namespace: shop}
spec:
  host: through.apps.test
  to: {kind: Service, name: tls}
  tls: {termination: passthrough, insecureEdgeTerminationPolicy: Redirect}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: wrong, namespace: shop}
spec:
  host: wrong.apps.test
  to: {kind: Service, name: tls}
  tls: {termination: passthrough, insecureEdgeTerminationPolicy: Allow}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: with-path, namespace: shop}
spec: {host: path.apps.test, path: /a, to: {kind: Service, name: tls}, tls: {termination: passthrough}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: unknown, namespace: shop}
spec: {host: unknown.apps.test, to: {kind: Service, name: tls}, tls: {termination: both}}

== backends
web: http for=shop/web
tls: h2 cert=through.apps.test for=shop/tls:443

== requests
$ curl http://plain.apps.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: Route shop/plain gets it, on 1 endpoint
$ curl --insecure https://plain.apps.test/
  HTTP/2 503
    x-sluice-cause: no-route
  explain: 503: plain.apps.test is known, but no route of it takes this
    fix: ask over http, or give the route spec.tls
$ curl https://edge.apps.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: Route shop/edge gets it, on 1 endpoint
$ curl http://edge.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: edge.apps.test is known, but no route of it takes this
    fix: ask over https, or set spec.tls.insecureEdgeTerminationPolicy to Redirect or Allow
$ curl https://both.apps.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: Route shop/both gets it, on 1 endpoint
$ curl http://both.apps.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: Route shop/both gets it, on 1 endpoint
$ curl https://sent.apps.test/in/1
  HTTP/2 200
  web saw GET /in/1 HTTP/1.1
  explain: Route shop/sent gets it, on 1 endpoint
$ curl http://sent.apps.test/in/1?a=b
  HTTP/1.1 302 Found
    location: https://sent.apps.test/in/1?a=b
  explain: Route shop/sent sends clear-text requests to https://sent.apps.test
$ curl http://sent.apps.test/out
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-route
  explain: 503: sent.apps.test is known, but no route of it takes this
    fix: add a Route with a path that covers /out
$ curl https://through.apps.test/
  HTTP/2 200
  tls saw GET / HTTP/2
    [tls TLSv1_3, SNI through.apps.test, ALPN h2]
  explain: Route shop/through gets the TLS stream as it is, on 1 endpoint
$ curl http://through.apps.test/x
  HTTP/1.1 302 Found
    location: https://through.apps.test/x
  explain: Route shop/through sends clear-text requests to https://through.apps.test
$ openssl s_client -servername through.apps.test -alpn h2
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_256_GCM_SHA384
  Peer certificate: CN = through.apps.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: Route shop/through gets the TLS stream as it is, on 1 endpoint

== status
route shop/plain
  ingress: default
    Admitted=True
    host: plain.apps.test
    wildcardPolicy: None
route shop/through
  ingress: default
    Admitted=True
    host: through.apps.test
    wildcardPolicy: None
route shop/wrong
  ingress: default
    Admitted=False InvalidManifest: story.yaml:49: spec.tls.insecureEdgeTerminationPolicy: Invalid value: "Allow": the backend of a passthrough route speaks TLS only; write None or Redirect
    host: wrong.apps.test
    wildcardPolicy: None

== validate
  Route shop/wrong: spec.tls.insecureEdgeTerminationPolicy: Invalid value: "Allow": the backend of a passthrough route speaks TLS only; write None or Redirect
  Route shop/with-path: spec.path: Forbidden: passthrough routes see no requests and have no path; remove it, or use edge
  Route shop/unknown: spec.tls.termination: Unsupported value: "both"; write edge, reencrypt or passthrough
