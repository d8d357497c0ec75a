A subdomain has TLS of its own as a whole, or its domain's
claims: Subdomain delegation TLS, Subdomain delegation the delegate's status, Subdomain delegation names that the certificate does not cover, IngressRoute secretName, Status TLSCertificateDelegation

The domain asks for TLS 1.3. Secrets of the domain's namespace: `wildcard` is nobody else's, `lent` is lent to the team.

== manifests
apiVersion: v1
kind: Secret
metadata: {name: wildcard, namespace: corp}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert *.corp.test}}, tls.key: {{key *.corp.test}}}
---
apiVersion: v1
kind: Secret
metadata: {name: lent, namespace: corp}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert lent.corp.test}}, tls.key: {{key lent.corp.test}}}
---
apiVersion: v1
kind: Secret
metadata: {name: own, namespace: team}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert own.corp.test}}, tls.key: {{key own.corp.test}}}
---
apiVersion: contour.heptio.com/v1beta1
kind: TLSCertificateDelegation
metadata: {name: lent, namespace: corp}
spec: {delegations: [{secretName: lent, targetNamespaces: [team]}]}
---
apiVersion: projectcontour.io/v1
kind: TLSCertificateDelegation
metadata: {name: everybody, namespace: corp}
spec: {delegations: [{secretName: lent, targetNamespaces: [other, "*"]}]}
---
apiVersion: projectcontour.io/v1
kind: TLSCertificateDelegation
metadata: {name: missing, namespace: corp}
spec: {delegations: [{secretName: none, targetNamespaces: ["*"]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: domain, namespace: corp}
spec:
  virtualhost: {fqdn: .corp.test, tls: {secretName: wildcard, minimumProtocolVersion: "1.3"}}
  subdomains:
  - {subdomain: inherits.corp.test, delegate: {name: inherits, namespace: team}}
  - {subdomain: own.corp.test, delegate: {name: own, namespace: team}}
  - {subdomain: takes.corp.test, delegate: {name: takes, namespace: team}}
  - {subdomain: lent.corp.test, delegate: {name: lent, namespace: team}}
  - {subdomain: a.b.corp.test, delegate: {name: inherits, namespace: team}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: inherits, namespace: team}
spec: {routes: [{match: /, services: [{name: web, port: 80}]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: own, namespace: team}
spec:
  virtualhost: {fqdn: own.corp.test, tls: {secretName: own, minimumProtocolVersion: "1.2"}}
  routes: [{match: /, services: [{name: web, port: 80}]}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: takes, namespace: team}
spec:
  virtualhost: {fqdn: takes.corp.test, tls: {secretName: corp/wildcard}}
  routes: [{match: /, services: [{name: web, port: 80}]}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: lent, namespace: team}
spec:
  virtualhost: {fqdn: lent.corp.test, tls: {secretName: corp/lent}}
  routes: [{match: /, services: [{name: web, port: 80}]}]
---
# The domain's Secret is missing: the delegate is not told which.
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: broken, namespace: corp}
spec:
  virtualhost: {fqdn: .broken.test, tls: {secretName: secret-name}}
  subdomains: [{subdomain: www.broken.test, delegate: {name: uncertain, namespace: team}}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: uncertain, namespace: team}
spec: {routes: [{match: /, services: [{name: web, port: 80}]}]}

== backends
web: http for=team/web

== requests
$ openssl s_client -servername inherits.corp.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = *.corp.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for inherits.corp.test ends here; the path decides which route gets a request
$ curl https://inherits.corp.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: IngressRoute team/inherits gets it, on 1 endpoint
$ openssl s_client -servername inherits.corp.test -tls1_2
! the client takes TLS 1.2 at most
  no TLS: alert 70
  explain: TLS for inherits.corp.test ends here; the path decides which route gets a request
$ openssl s_client -servername own.corp.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = own.corp.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for own.corp.test ends here; the path decides which route gets a request
$ curl https://own.corp.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: IngressRoute team/own gets it, on 1 endpoint
# A subdomain cannot weaken its domain.
$ openssl s_client -servername own.corp.test -tls1_2
! the client takes TLS 1.2 at most
  no TLS: alert 70
  explain: TLS for own.corp.test ends here; the path decides which route gets a request
$ curl --insecure https://takes.corp.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: IngressRoute team/takes claims it and is not served: IngressRoute corp/domain: Invalid: corp/wildcard: certificate delegation not permitted
    fix: correct the route as its condition says; `sluice validate` shows the place
$ openssl s_client -servername takes.corp.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = rcgen self signed cert
  Verification error: self-signed certificate
  Server Temp Key: X25519, 253 bits
  explain: the default certificate, and 404: IngressRoute team/takes claims it and is not served: IngressRoute corp/domain: Invalid: corp/wildcard: certificate delegation not permitted
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://takes.corp.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute team/takes claims it and is not served: IngressRoute corp/domain: Invalid: corp/wildcard: certificate delegation not permitted
    fix: correct the route as its condition says; `sluice validate` shows the place
$ openssl s_client -servername lent.corp.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = lent.corp.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for lent.corp.test ends here; the path decides which route gets a request
$ curl https://lent.corp.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: IngressRoute team/lent gets it, on 1 endpoint
$ openssl s_client -servername a.b.corp.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = *.corp.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for a.b.corp.test ends here; the path decides which route gets a request
$ curl https://a.b.corp.test/
! the client does not like the certificate
  the client refuses the certificate: no alternative certificate subject name matches target host name 'a.b.corp.test'
  explain: IngressRoute team/inherits gets it, on 1 endpoint
$ curl --insecure https://a.b.corp.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: IngressRoute team/inherits gets it, on 1 endpoint
$ curl --insecure https://www.broken.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/broken claims it and is not served: default: Invalid: TLS Secret [secret-name] not found or is malformed
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://www.broken.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/broken claims it and is not served: default: Invalid: TLS Secret [secret-name] not found or is malformed
    fix: correct the route as its condition says; `sluice validate` shows the place

== status
ingressroute corp/domain
  currentStatus: valid
  description: valid IngressRoute (4 of 5 subdomains); takes.corp.test: delegate team/takes is invalid; certificate corp/wildcard does not cover a.b.corp.test
ingressroute team/inherits
  currentStatus: valid
  description: valid IngressRoute
  parents: corp/domain a.b.corp.test -> team/inherits
    IngressRoute corp/domain#a.b.corp.test
    fqdn: a.b.corp.test
    currentStatus: valid
    description: valid IngressRoute
  parents: corp/domain inherits.corp.test -> team/inherits
    IngressRoute corp/domain#inherits.corp.test
    fqdn: inherits.corp.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute team/own
  currentStatus: valid
  description: valid IngressRoute
  parents: corp/domain own.corp.test -> team/own
    IngressRoute corp/domain#own.corp.test
    fqdn: own.corp.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute team/takes
  currentStatus: invalid
  description: corp/wildcard: certificate delegation not permitted
  parents: corp/domain takes.corp.test -> team/takes
    IngressRoute corp/domain#takes.corp.test
    fqdn: takes.corp.test
    currentStatus: invalid
    description: corp/wildcard: certificate delegation not permitted
ingressroute team/lent
  currentStatus: valid
  description: valid IngressRoute
  parents: corp/domain lent.corp.test -> team/lent
    IngressRoute corp/domain#lent.corp.test
    fqdn: lent.corp.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute corp/broken
  currentStatus: invalid
  description: TLS Secret [secret-name] not found or is malformed
ingressroute team/uncertain
  currentStatus: orphaned
  description: this IngressRoute is not part of a delegation chain from a root IngressRoute
  parents: corp/broken www.broken.test -> team/uncertain
    IngressRoute corp/broken#www.broken.test
    fqdn: www.broken.test
    currentStatus: orphaned
    description: the root of the delegation is invalid
tlscertificatedelegation corp/everybody
  Valid=True: Valid TLSCertificateDelegation
tlscertificatedelegation corp/missing
  Valid=False ErrorPresent: delegations[0]: TLS Secret [none] not found or is malformed

== validate
  warning: TLSCertificateDelegation corp/missing: Sluice does not use it: Invalid: delegations[0]: TLS Secret [none] not found or is malformed
  warning: IngressRoute corp/domain: spec.virtualhost.tls.secretName: the certificate is made out for *.corp.test and not for a.b.corp.test, so clients refuse it; use one with that name (subjectAltName), or another host
  warning: IngressRoute team/takes: IngressRoute corp/domain does not serve it: Invalid: corp/wildcard: certificate delegation not permitted
  warning: IngressRoute corp/broken: default does not serve it: Invalid: TLS Secret [secret-name] not found or is malformed
  warning: IngressRoute team/uncertain: IngressRoute corp/broken does not serve it: Orphaned: the root of the delegation is invalid
