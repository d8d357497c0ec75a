A domain's certificate serves the names that it delegates
claims: Subdomain delegation the root, Subdomain delegation subdomain, Subdomain delegation a delegate that is missing, Subdomain delegation undelegated names, Status Roots of domains

The root serves nothing itself.

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
  subdomains:
  - {subdomain: mail.corp.test, delegate: {name: mail, namespace: exchange}}
  - {subdomain: www.corp.test, delegate: {name: www}}
  - {subdomain: gone.corp.test, delegate: {name: gone, namespace: exchange}}
  - {subdomain: a.b.corp.test, delegate: {name: www}}
  - {subdomain: "*.x.corp.test", delegate: {name: www}}
  - {subdomain: Upper.corp.test, delegate: {name: www}}
  - {subdomain: www.other.test, delegate: {name: www}}
  - {subdomain: corp.test, delegate: {name: www}}
  - {subdomain: twice.corp.test, delegate: {name: www}}
  - {subdomain: twice.corp.test, delegate: {name: mail, namespace: exchange}}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: mail, namespace: exchange}
spec: {routes: [{match: /, services: [{name: mail, port: 80}]}]}
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: www, namespace: corp}
spec: {routes: [{match: /, services: [{name: www, port: 80}]}]}
---
# A root with routes of its own is none.
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: routes, namespace: corp}
spec:
  virtualhost: {fqdn: .routes.test}
  subdomains: [{subdomain: www.routes.test, delegate: {name: www}}]
  routes: [{match: /, services: [{name: www, port: 80}]}]
---
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: tcp, namespace: corp}
spec:
  virtualhost: {fqdn: .tcp.test}
  subdomains: [{subdomain: www.tcp.test, delegate: {name: www}}]
  tcpproxy: {services: [{name: www, port: 80}]}

== backends
mail: http for=exchange/mail
www: http for=corp/www

== requests
$ curl https://mail.corp.test/inbox
  HTTP/2 200
  mail saw GET /inbox HTTP/1.1
  explain: IngressRoute exchange/mail gets it, on 1 endpoint
$ curl https://www.corp.test/
  HTTP/2 200
  www saw GET / HTTP/1.1
  explain: IngressRoute corp/www gets it, on 1 endpoint
$ curl http://www.corp.test/
  HTTP/1.1 301 Moved Permanently
    location: https://www.corp.test/
  explain: IngressRoute corp/www redirects to https://{host}{path} with 301
$ openssl s_client -servername mail.corp.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = *.corp.test
  Verification: OK
  Server Temp Key: X25519, 253 bits
  explain: TLS for mail.corp.test ends here; the path decides which route gets a request
# The name has two labels below the domain: served, and the client minds.
$ curl --insecure https://a.b.corp.test/
  HTTP/2 200
  www saw GET / HTTP/1.1
  explain: IngressRoute corp/www gets it, on 1 endpoint
# A delegate that is missing: the domain answers for it.
$ curl https://gone.corp.test/
  HTTP/2 502
    x-sluice-cause: rule-answer
  explain: 502: IngressRoute corp/domain has it, and nothing that it could go to
    fix: IngressRoute corp/domain says Invalid: gone.corp.test: delegate exchange/gone not found
$ curl http://gone.corp.test/
  HTTP/1.1 301 Moved Permanently
    location: https://gone.corp.test/
  explain: IngressRoute corp/domain redirects to https://{host}{path} with 301
# Nobody's names: the router's own certificate, and nothing there.
$ openssl s_client -servername nobody.corp.test
  Protocol version: TLSv1.3
  Ciphersuite: TLS_AES_128_GCM_SHA256
  Peer certificate: CN = rcgen self signed cert
  Verification error: self-signed certificate
  Server Temp Key: X25519, 253 bits
  explain: the default certificate, and 404: no object of router default has nobody.corp.test
    fix: create a Route with host nobody.corp.test
$ curl --insecure https://nobody.corp.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: no object of router default has nobody.corp.test
    fix: create a Route with host nobody.corp.test
$ curl http://nobody.corp.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: no object of router default has nobody.corp.test
    fix: create a Route with host nobody.corp.test
$ curl --insecure https://corp.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/domain claims it and is not served: default: Invalid: subdomain corp.test is not within .corp.test
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl --insecure https://any.x.corp.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/domain claims it and is not served: default: Invalid: subdomain *.x.corp.test cannot use wildcards
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl --insecure https://upper.corp.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/domain claims it and is not served: default: Invalid: subdomain Upper.corp.test must be in lower case
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://www.other.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/domain claims it and is not served: default: Invalid: subdomain www.other.test is not within .corp.test
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl --insecure https://twice.corp.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/domain claims it and is not served: default: Invalid: subdomain twice.corp.test is listed more than once
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://www.routes.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/routes claims it and is not served: default: Invalid: domain root cannot define routes
    fix: correct the route as its condition says; `sluice validate` shows the place
$ curl http://www.tcp.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: IngressRoute corp/tcp claims it and is not served: default: Invalid: domain root cannot define routes
    fix: correct the route as its condition says; `sluice validate` shows the place

== status
ingressroute corp/domain
  currentStatus: valid
  description: valid IngressRoute (3 of 10 subdomains); gone.corp.test: delegate exchange/gone not found; subdomain *.x.corp.test cannot use wildcards; subdomain Upper.corp.test must be in lower case; subdomain www.other.test is not within .corp.test; subdomain corp.test is not within .corp.test; subdomain twice.corp.test is listed more than once; subdomain twice.corp.test is listed more than once; certificate corp/wildcard does not cover a.b.corp.test
ingressroute exchange/mail
  currentStatus: valid
  description: valid IngressRoute
  parents: corp/domain mail.corp.test -> exchange/mail
    IngressRoute corp/domain#mail.corp.test
    fqdn: mail.corp.test
    currentStatus: valid
    description: valid IngressRoute
ingressroute corp/www
  currentStatus: valid
  description: valid IngressRoute (2 of 4 paths)
  parents: corp/domain a.b.corp.test -> corp/www
    IngressRoute corp/domain#a.b.corp.test
    fqdn: a.b.corp.test
    currentStatus: valid
    description: valid IngressRoute
  parents: corp/domain www.corp.test -> corp/www
    IngressRoute corp/domain#www.corp.test
    fqdn: www.corp.test
    currentStatus: valid
    description: valid IngressRoute
  parents: corp/routes www.routes.test -> corp/www
    IngressRoute corp/routes#www.routes.test
    fqdn: www.routes.test
    currentStatus: orphaned
    description: the root of the delegation is invalid
  parents: corp/tcp www.tcp.test -> corp/www
    IngressRoute corp/tcp#www.tcp.test
    fqdn: www.tcp.test
    currentStatus: orphaned
    description: the root of the delegation is invalid
ingressroute corp/routes
  currentStatus: invalid
  description: domain root cannot define routes
ingressroute corp/tcp
  currentStatus: invalid
  description: domain root cannot define routes

== validate
  warning: IngressRoute corp/domain: default does not serve it: Invalid: gone.corp.test: delegate exchange/gone not found
  warning: IngressRoute corp/domain: default does not serve it: Invalid: subdomain *.x.corp.test cannot use wildcards
  warning: IngressRoute corp/domain: default does not serve it: Invalid: subdomain Upper.corp.test must be in lower case
  warning: IngressRoute corp/domain: default does not serve it: Invalid: subdomain corp.test is not within .corp.test
  warning: IngressRoute corp/domain: default does not serve it: Invalid: subdomain twice.corp.test is listed more than once
  warning: IngressRoute corp/domain: default does not serve it: Invalid: subdomain www.other.test is not within .corp.test
  warning: IngressRoute corp/domain: spec.virtualhost.tls.secretName: the certificate is made out for *.corp.test and not for a.b.corp.test, so clients refuse it; use one with that name (subjectAltName), or another host
  warning: IngressRoute corp/www: IngressRoute corp/routes does not serve it: Orphaned: the root of the delegation is invalid
  warning: IngressRoute corp/www: IngressRoute corp/tcp does not serve it: Orphaned: the root of the delegation is invalid
  warning: IngressRoute corp/routes: default does not serve it: Invalid: domain root cannot define routes
  warning: IngressRoute corp/tcp: default does not serve it: Invalid: domain root cannot define routes
