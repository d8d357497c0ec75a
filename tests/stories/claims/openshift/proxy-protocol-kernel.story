The kernel tells passthrough endpoints the client's address
claims: router.sluice.dev/proxy-protocol
data-path: kernel

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: told, namespace: shop, annotations: {router.sluice.dev/proxy-protocol: v2}}
spec:
  host: told.apps.test
  to: {kind: Service, name: told}
  tls: {termination: passthrough}

== backends
told: https cert=told.apps.test proxied for=shop/told:443

== requests
$ curl https://told.apps.test/
  HTTP/1.1 200 OK
  told saw GET / HTTP/1.1
    [PROXY version 2: 192.0.2.1 to 10.0.0.1:443]
    [tls TLSv1_3, SNI told.apps.test, ALPN http/1.1]
  explain: Route shop/told gets the TLS stream as it is, on 1 endpoint

== bpf sni_passthrough
  {"router":2470140894,"host":"told.apps.test"}
