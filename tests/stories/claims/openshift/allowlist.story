Who may come
claims: haproxy.router.openshift.io/ip_allowlist, haproxy.router.openshift.io/ip_whitelist

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: some
  namespace: shop
  annotations: {haproxy.router.openshift.io/ip_allowlist: 192.0.2.1 198.51.100.0/24}
spec:
  host: some.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: old
  namespace: shop
  annotations: {haproxy.router.openshift.io/ip_whitelist: 192.0.2.2}
spec:
  host: old.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: both
  namespace: shop
  annotations:
    haproxy.router.openshift.io/ip_allowlist: 192.0.2.1
    haproxy.router.openshift.io/ip_whitelist: 192.0.2.2
spec:
  host: both.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: nobody
  namespace: shop
  annotations: {haproxy.router.openshift.io/ip_allowlist: office}
spec:
  host: nobody.apps.test
  to: {kind: Service, name: web}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: through
  namespace: shop
  annotations: {haproxy.router.openshift.io/ip_allowlist: 192.0.2.1}
spec:
  host: through.apps.test
  to: {kind: Service, name: tls}
  tls: {termination: passthrough}

== backends
one: http for=shop/web
tls: https cert=through.apps.test for=shop/tls:443

== requests
$ curl --interface 192.0.2.1 http://some.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/some gets it, on 1 endpoint
$ curl --interface 198.51.100.7 http://some.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/some gets it, on 1 endpoint
$ curl --interface 192.0.2.2 http://some.apps.test/
  HTTP/1.1 403 Forbidden
    x-sluice-cause: source-not-allowed
  explain: 403: Route shop/some has it, but 192.0.2.2 is not in its allow-list
    fix: add 192.0.2.2 to the annotation haproxy.router.openshift.io/ip_allowlist of Route shop/some
$ curl --interface 192.0.2.2 http://old.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/old gets it, on 1 endpoint
$ curl --interface 192.0.2.1 http://old.apps.test/
  HTTP/1.1 403 Forbidden
    x-sluice-cause: source-not-allowed
  explain: 403: Route shop/old has it, but 192.0.2.1 is not in its allow-list
    fix: add 192.0.2.1 to the annotation haproxy.router.openshift.io/ip_whitelist of Route shop/old
$ curl --interface 192.0.2.1 http://both.apps.test/
  HTTP/1.1 200 OK
  one saw GET / HTTP/1.1
  explain: Route shop/both gets it, on 1 endpoint
$ curl --interface 192.0.2.2 http://both.apps.test/
  HTTP/1.1 403 Forbidden
    x-sluice-cause: source-not-allowed
  explain: 403: Route shop/both has it, but 192.0.2.2 is not in its allow-list
    fix: add 192.0.2.2 to the annotation haproxy.router.openshift.io/ip_allowlist of Route shop/both
$ curl --interface 192.0.2.1 http://nobody.apps.test/
  HTTP/1.1 403 Forbidden
    x-sluice-cause: source-not-allowed
  explain: Route shop/nobody has it, but its allow-list has no valid address, so nobody may connect
    fix: write IP addresses or networks, such as 10.0.0.0/8, into the route's allow-list
$ curl --interface 192.0.2.1 https://through.apps.test/
  HTTP/1.1 200 OK
  tls saw GET / HTTP/1.1
    [tls TLSv1_3, SNI through.apps.test, ALPN http/1.1]
  explain: Route shop/through gets the TLS stream as it is, on 1 endpoint
$ curl --interface 192.0.2.2 https://through.apps.test/
  no TLS: the connection ends in the handshake
  explain: the connection is reset: Route shop/through has it, but 192.0.2.2 is not in its allow-list
    fix: add 192.0.2.2 to the annotation haproxy.router.openshift.io/ip_allowlist of Route shop/through

== status
route shop/nobody
  ingress: default
    Admitted=True NobodyAllowed: annotation haproxy.router.openshift.io/ip_allowlist has no valid address, so nobody may connect
    host: nobody.apps.test
    wildcardPolicy: None

== validate
  warning: Route shop/nobody: router default admits it: NobodyAllowed: annotation haproxy.router.openshift.io/ip_allowlist has no valid address, so nobody may connect
  warning: Route shop/nobody: metadata.annotations[haproxy.router.openshift.io/ip_allowlist]: not addresses, ignored: office; write IP addresses or networks, such as 10.0.0.0/8
