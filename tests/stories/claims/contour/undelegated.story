Names in a domain that it does not delegate may be lent out
claims: Subdomain delegation a root of a name that is not delegated
flags: --allow-undelegated-subdomains

With `--allow-undelegated-subdomains` a root of such a name is served, and never with the domain's certificate.

== manifests
apiVersion: v1
kind: Secret
metadata: {name: wildcard, namespace: corp}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert *.corp.test}}, tls.key: {{key *.corp.test}}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: domain, namespace: corp}
spec:
  virtualhost: {fqdn: .corp.test, tls: {secretName: wildcard}}
  subdomains: [{subdomain: www.corp.test, delegate: {name: www}}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: www, namespace: corp}
spec: {routes: [{match: /, services: [{name: web, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: stranger, namespace: other}
spec: {virtualhost: {fqdn: stranger.corp.test}, routes: [{services: [{name: web, port: 80}]}]}

== backends
corp: http for=corp/web
other: http for=other/web

== requests
$ curl https://www.corp.test/
  HTTP/2 200
  corp saw GET / HTTP/1.1
  explain: IngressRoute corp/www gets it, on 1 endpoint
$ curl http://stranger.corp.test/
  HTTP/1.1 200 OK
  other saw GET / HTTP/1.1
  explain: HTTPProxy other/stranger gets it, on 1 endpoint
$ curl --insecure https://stranger.corp.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: HTTPProxy other/stranger#stranger.corp.test has stranger.corp.test on http only
    fix: ask over http, or write spec.virtualhost.tls
$ openssl s_client -servername stranger.corp.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = rcgen self signed cert
  Verification error: self-signed certificate
  Server Temp Key: X25519, 253 bits
  explain: the default certificate, and 404: HTTPProxy other/stranger#stranger.corp.test has stranger.corp.test on http only
    fix: ask over http, or write spec.virtualhost.tls

== status
ingressroute corp/domain
  currentStatus: valid
  description: valid IngressRoute (1 of 1 subdomains)
httpproxy other/stranger
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
