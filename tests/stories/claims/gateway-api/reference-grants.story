Nothing of another namespace without a grant
claims: ReferenceGrant

Without one nobody learns whether an object is there.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: infra}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: granted, port: 443, protocol: HTTPS, hostname: granted.test, tls: {certificateRefs: [{name: pair, namespace: vault}]}}
  - {name: refused, port: 443, protocol: HTTPS, hostname: refused.test, tls: {certificateRefs: [{name: other, namespace: vault}]}}
---
apiVersion: v1
kind: Secret
metadata: {name: pair, namespace: vault}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert granted.test}}, tls.key: {{key granted.test}}}
---
apiVersion: v1
kind: Secret
metadata: {name: other, namespace: vault}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert refused.test}}, tls.key: {{key refused.test}}}
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: pair, namespace: vault}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra}]
  to: [{group: "", kind: Secret, name: pair}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs: [{name: public, namespace: infra}]
  hostnames: [shop.test]
  rules:
  - {matches: [{path: {value: /granted}}], backendRefs: [{name: web, namespace: blog, port: 80}]}
  - {matches: [{path: {value: /refused}}], backendRefs: [{name: private, namespace: blog, port: 80}]}
  - {matches: [{path: {value: /missing}}], backendRefs: [{name: missing, namespace: blog, port: 80}]}
  - {backendRefs: [{name: web, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: other, namespace: other}
spec:
  parentRefs: [{name: public, namespace: infra, sectionName: web}]
  hostnames: [other.test]
  rules: [{backendRefs: [{name: web, namespace: blog, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: tls, namespace: infra}
spec:
  parentRefs: [{name: public, sectionName: granted}, {name: public, sectionName: refused}]
  rules: [{backendRefs: [{name: web, port: 80}]}]

== manifests grant
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: web, namespace: blog}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}]
  to: [{group: "", kind: Service, name: web}]

== manifests later grant
# Nothing any more.

== backends
web: http for=blog/web
own: http for=shop/web
private: http for=blog/private
infra: http for=infra/web

== requests
$ curl http://shop.test/granted
  HTTP/1.1 200 OK
  web saw GET /granted HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://shop.test/refused
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: HTTPRoute shop/shop says ResolvedRefs: RefNotPermitted: rule 1: no ReferenceGrant in blog lets this HTTPRoute use Service blog/private; rule 2: no ReferenceGrant in blog lets this HTTPRoute use Service blog/missing
$ curl http://shop.test/missing
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: HTTPRoute shop/shop says ResolvedRefs: RefNotPermitted: rule 1: no ReferenceGrant in blog lets this HTTPRoute use Service blog/private; rule 2: no ReferenceGrant in blog lets this HTTPRoute use Service blog/missing
$ curl http://shop.test/
  HTTP/1.1 200 OK
  own saw GET / HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint
$ curl http://other.test/
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute other/other has it, and nothing that it could go to
    fix: HTTPRoute other/other says ResolvedRefs: RefNotPermitted: rule 0: no ReferenceGrant in blog lets this HTTPRoute use Service blog/web
$ curl https://granted.test/
  HTTP/2 200
  infra saw GET / HTTP/1.1
  explain: HTTPRoute infra/tls gets it, on 1 endpoint
$ curl --insecure https://refused.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: Gateway infra/public#refused has refused.test, and no certificate for https
    fix: ask over http, or add a listener for https; one that is there says in ResolvedRefs what it lacks

== status
httproute shop/shop
  parents:
    Gateway infra/public
    Accepted=True
    ResolvedRefs=False RefNotPermitted: rule 1: no ReferenceGrant in blog lets this HTTPRoute use Service blog/private; rule 2: no ReferenceGrant in blog lets this HTTPRoute use Service blog/missing
httproute other/other
  parents:
    Gateway infra/public#web
    Accepted=True
    ResolvedRefs=False RefNotPermitted: rule 0: no ReferenceGrant in blog lets this HTTPRoute use Service blog/web
httproute infra/tls
  parents:
    Gateway public#granted
    Accepted=True
    ResolvedRefs=True
  parents:
    Gateway public#refused
    Accepted=True
    ResolvedRefs=True
gateway infra/public
  Accepted=True
  Programmed=True
  ResolvedRefs=False ListenersNotResolved: listeners have references that cannot be used: refused
  listeners: web
    attachedRoutes: 2
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
  listeners: granted
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
  listeners: refused
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=False RefNotPermitted: certificateRefs: no ReferenceGrant in vault lets this Gateway use Secret vault/other
    Programmed=False Invalid: no certificate can be shown to clients; see ResolvedRefs

== requests
# The grant goes.
$ apply grant
$ curl http://shop.test/granted
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/shop has it, and nothing that it could go to
    fix: HTTPRoute shop/shop says ResolvedRefs: RefNotPermitted: rule 0: no ReferenceGrant in blog lets this HTTPRoute use Service blog/web; rule 1: no ReferenceGrant in blog lets this HTTPRoute use Service blog/private; rule 2: no ReferenceGrant in blog lets this HTTPRoute use Service blog/missing

== status
httproute shop/shop
  parents:
    Gateway infra/public
    Accepted=True
    ResolvedRefs=False RefNotPermitted: rule 0: no ReferenceGrant in blog lets this HTTPRoute use Service blog/web; rule 1: no ReferenceGrant in blog lets this HTTPRoute use Service blog/private; rule 2: no ReferenceGrant in blog lets this HTTPRoute use Service blog/missing
