Rules that ask for what is not done
claims: What is not done, sessionPersistence, ExternalAuth, BackendTLSPolicy.spec.options

A rule is dropped, and a route of such rules alone is refused; the others serve.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  gatewayClassName: sluice
  listeners: [{name: web, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: partly, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [partly.test]
  rules:
  - matches: [{path: {value: /session}}]
    sessionPersistence: {sessionName: s}
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /auth}}]
    filters:
    - type: ExternalAuth
      externalAuth: {protocol: HTTP, backendRef: {name: web, port: 80}, http: {path: /auth}}
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /single}}]
    backendRefs:
    - name: web
      port: 80
      filters: [{type: URLRewrite, urlRewrite: {hostname: inside.test}}]
  - matches: [{path: {value: /extension}}]
    filters: [{type: ExtensionRef, extensionRef: {group: example.com, kind: Limit, name: ten}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /fine}}]
    backendRefs: [{name: web, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: wholly, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [wholly.test]
  rules:
  - sessionPersistence: {sessionName: s}
    backendRefs: [{name: web, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: calls, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [calls.test]
  rules:
  - matches: [{method: {service: test.Session}}]
    sessionPersistence: {sessionName: s}
    backendRefs: [{name: calls, port: 80}]
  - backendRefs: [{name: calls, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: tls, namespace: shop}
spec:
  parentRefs: [{name: public}]
  hostnames: [tls.test]
  rules: [{backendRefs: [{name: tls, port: 443}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: tls, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: tls}]
  options: {example.com/ciphers: some}
  validation: {hostname: app.internal, wellKnownCACertificates: System}

== backends
web: http for=shop/web
calls: grpc for=shop/calls
tls: https for=shop/tls:443 "cert=app.internal by inside"

== requests
$ curl http://partly.test/session
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has partly.test, and no rule takes /session
    fix: give a route on Gateway shop/public#web a rule that matches /session
$ curl http://partly.test/auth
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has partly.test, and no rule takes /auth
    fix: give a route on Gateway shop/public#web a rule that matches /auth
$ curl http://partly.test/single
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has partly.test, and no rule takes /single
    fix: give a route on Gateway shop/public#web a rule that matches /single
$ curl http://partly.test/extension
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/partly has it, and nothing that it could go to
    fix: HTTPRoute shop/partly says ResolvedRefs: InvalidKind: rule 3: ExtensionRef Limit "ten": no kind of filter is known; requests are answered 500
$ curl http://partly.test/fine
  HTTP/1.1 200 OK
  web saw GET /fine HTTP/1.1
  explain: HTTPRoute shop/partly gets it, on 1 endpoint
$ curl http://wholly.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/public#web has *, and no route with it is attached there
    fix: give a route on Gateway shop/public#web a rule that matches /
$ curl --http2-prior-knowledge -X POST -H 'content-type: application/grpc' -H 'te: trailers' http://calls.test/test.Session/Begin
  HTTP/2 200
  calls saw POST /test.Session/Begin HTTP/2
  explain: GRPCRoute shop/calls gets it, on 1 endpoint
# In clear text it would be another backend than the policy means.
$ curl http://tls.test/
  HTTP/1.1 500 Internal Server Error
    x-sluice-cause: rule-answer
  explain: 500: HTTPRoute shop/tls has it, and nothing that it could go to
    fix: look at the status of HTTPRoute shop/tls and of the policies for its backends, and at the rule's backends

== status
httproute shop/partly
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=False InvalidKind: rule 3: ExtensionRef Limit "ten": no kind of filter is known; requests are answered 500
    PartiallyInvalid=True UnsupportedValue: Dropped Rule 0, 1, 2: rule 0: spec.rules[0].sessionPersistence: sessions are not kept with one backend; remove it; rule 1: spec.rules[1].filters[0].externalAuth.protocol: requests are not authorised by another service; remove the filter; rule 2: spec.rules[2].backendRefs[0].filters[0].type: URLRewrite is not done for single backends; write it in the rule's filters
httproute shop/wholly
  parents:
    Gateway public
    Accepted=False UnsupportedValue: rule 0: spec.rules[0].sessionPersistence: sessions are not kept with one backend; remove it
    ResolvedRefs=True
grpcroute shop/calls
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
    PartiallyInvalid=True UnsupportedValue: Dropped Rule 0: rule 0: spec.rules[0].sessionPersistence: sessions are not kept with one backend; remove it
httproute shop/tls
  parents:
    Gateway public
    Accepted=True
    ResolvedRefs=True
backendtlspolicy shop/tls
  ancestors:
    ancestorRef:
      kind: Gateway
      namespace: shop
    Accepted=False Invalid: spec.options[example.com/ciphers]: no TLS option is known; remove it
    ResolvedRefs=True
