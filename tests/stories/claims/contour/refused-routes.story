Fields of routes and services that are not done
claims: HTTPProxy rejected cookieRewritePolicies, HTTPProxy rejected slowStartPolicy, HTTPProxy rejected validation, HTTPProxy rejected %…%, HTTPProxy rejected body, HTTPProxy rejected authPolicy, HTTPProxy rejected rateLimitPolicy, HTTPProxy rejected jwtVerificationPolicy, HTTPProxy rejected internalRedirectPolicy, HTTPProxy rejected ipAllowPolicy, HTTPProxy rejected ipDenyPolicy, HTTPProxy Errors in routes

One of them takes the whole object out. What is included goes on beside it, and the other way round.

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: root, namespace: shop}
spec:
  virtualhost: {fqdn: shop.test}
  includes:
  - {name: cookies, conditions: [{prefix: /cookies}]}
  - {name: slow-start, conditions: [{prefix: /slow-start}]}
  - {name: unverified, conditions: [{prefix: /unverified}]}
  - {name: dynamic, conditions: [{prefix: /dynamic}]}
  - {name: body, conditions: [{prefix: /body}]}
  - {name: auth, conditions: [{prefix: /auth}]}
  - {name: rate, conditions: [{prefix: /rate}]}
  - {name: jwt, conditions: [{prefix: /jwt}]}
  - {name: internal, conditions: [{prefix: /internal}]}
  - {name: allow, conditions: [{prefix: /allow}]}
  - {name: deny, conditions: [{prefix: /deny}]}
  - {name: missing, conditions: [{prefix: /missing}]}
  - {name: other-root, conditions: [{prefix: /root}]}
  - {name: services, conditions: [{prefix: /services}]}
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: cookies, namespace: shop}
spec:
  routes:
  - services: [{name: web, port: 80}]
    cookieRewritePolicies: [{name: id, sameSite: Strict}]
  - {conditions: [{prefix: /fine}], services: [{name: web, port: 80}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: slow-start, namespace: shop}
spec: {routes: [{services: [{name: web, port: 80, slowStartPolicy: {window: 10s}}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: unverified, namespace: shop}
spec: {routes: [{services: [{name: web, port: 80, protocol: tls}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: dynamic, namespace: shop}
spec:
  routes:
  - services: [{name: web, port: 80}]
    requestHeadersPolicy: {set: [{name: X-Client, value: "%DOWNSTREAM_REMOTE_ADDRESS%"}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: body, namespace: shop}
spec: {routes: [{directResponsePolicy: {statusCode: 403, body: closed}}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: auth, namespace: shop}
spec: {routes: [{services: [{name: web, port: 80}], authPolicy: {context: {a: b}}}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: rate, namespace: shop}
spec: {routes: [{services: [{name: web, port: 80}], rateLimitPolicy: {local: {requests: 1, unit: minute}}}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: jwt, namespace: shop}
spec: {routes: [{services: [{name: web, port: 80}], jwtVerificationPolicy: {require: one}}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: internal, namespace: shop}
spec: {routes: [{services: [{name: web, port: 80}], internalRedirectPolicy: {maxInternalRedirects: 1}}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: allow, namespace: shop}
spec: {routes: [{services: [{name: web, port: 80}], ipAllowPolicy: [{source: Peer, cidr: 10.0.0.0/8}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: deny, namespace: shop}
spec: {routes: [{services: [{name: web, port: 80}], ipDenyPolicy: [{source: Peer, cidr: 192.0.2.0/24}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: other-root, namespace: shop}
spec: {virtualhost: {fqdn: other.test}, routes: [{services: [{name: web, port: 80}]}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: services, namespace: shop}
spec:
  routes:
  - services: [{name: gone, port: 80}]
  - {conditions: [{prefix: /some}], services: [{name: gone, port: 80}, {name: web, port: 80}]}

== backends
web: http for=shop/web

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: HTTPProxy shop/root gets it, on 1 endpoint
$ curl http://shop.test/cookies
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/cookies has it, and nothing that it could go to
    fix: HTTPProxy shop/cookies says Invalid: spec.routes[0].cookieRewritePolicies is not supported; remove it
$ curl http://shop.test/cookies/fine
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/cookies has it, and nothing that it could go to
    fix: HTTPProxy shop/cookies says Invalid: spec.routes[0].cookieRewritePolicies is not supported; remove it
$ curl http://shop.test/slow-start
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/slow-start has it, and nothing that it could go to
    fix: HTTPProxy shop/slow-start says Invalid: spec.routes[0].services[0].slowStartPolicy is not supported; remove it
$ curl http://shop.test/unverified
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: rule-answer
  explain: 503: HTTPProxy shop/unverified has it, and nothing that it could go to
    fix: HTTPProxy shop/unverified says Invalid: Service [web:80] TLS without validation is not supported; add validation with caSecret and subjectName
$ curl http://shop.test/dynamic
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/dynamic has it, and nothing that it could go to
    fix: HTTPProxy shop/dynamic says Invalid: spec.routes[0].requestHeadersPolicy.set[0]: dynamic values (%…%) are not supported; write a value as it is
$ curl http://shop.test/body
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/body has it, and nothing that it could go to
    fix: HTTPProxy shop/body says Invalid: spec.routes[0].directResponsePolicy.body is not supported; remove it
$ curl http://shop.test/auth
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/auth has it, and nothing that it could go to
    fix: HTTPProxy shop/auth says Invalid: spec.routes[0].authPolicy is not supported; remove it
$ curl http://shop.test/rate
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/rate has it, and nothing that it could go to
    fix: HTTPProxy shop/rate says Invalid: spec.routes[0].rateLimitPolicy is not supported; remove it
$ curl http://shop.test/jwt
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/jwt has it, and nothing that it could go to
    fix: HTTPProxy shop/jwt says Invalid: spec.routes[0].jwtVerificationPolicy is not supported; remove it
$ curl http://shop.test/internal
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/internal has it, and nothing that it could go to
    fix: HTTPProxy shop/internal says Invalid: spec.routes[0].internalRedirectPolicy is not supported; remove it
$ curl http://shop.test/allow
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/allow has it, and nothing that it could go to
    fix: HTTPProxy shop/allow says Invalid: spec.routes[0].ipAllowPolicy is not supported; remove it
$ curl http://shop.test/deny
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/deny has it, and nothing that it could go to
    fix: HTTPProxy shop/deny says Invalid: spec.routes[0].ipDenyPolicy is not supported; remove it
$ curl http://shop.test/missing
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/root has it, and nothing that it could go to
    fix: HTTPProxy shop/root says PartiallyInvalid: include shop/missing not found; root httpproxy cannot include another root httpproxy
$ curl http://shop.test/root
  HTTP/1.1 502 Bad Gateway
    x-sluice-cause: rule-answer
  explain: 502: HTTPProxy shop/root has it, and nothing that it could go to
    fix: HTTPProxy shop/root says PartiallyInvalid: include shop/missing not found; root httpproxy cannot include another root httpproxy
$ curl http://other.test/root
  HTTP/1.1 200 OK
  web saw GET /root HTTP/1.1
  explain: HTTPProxy shop/other-root gets it, on 1 endpoint
$ curl http://shop.test/services
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: rule-answer
  explain: 503: HTTPProxy shop/services has it, and nothing that it could go to
    fix: HTTPProxy shop/services says PartiallyInvalid: Spec.Routes unresolved service reference: service "shop/gone" has no port 80, or is missing
$ curl http://shop.test/services/some
  HTTP/1.1 200 OK
  web saw GET /services/some HTTP/1.1
  explain: HTTPProxy shop/services gets it, on 1 endpoint

== status
httpproxy shop/root
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    IncludeError=True IncludeNotFound: include shop/missing not found
    IncludeError=True RootIncludesRoot: root httpproxy cannot include another root httpproxy
httpproxy shop/cookies
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].cookieRewritePolicies is not supported; remove it
  parents: shop/root prefix /cookies -> shop/cookies
    HTTPProxy shop/root#prefix /cookies
    fqdn: shop.test
    currentStatus: invalid
    description: spec.routes[0].cookieRewritePolicies is not supported; remove it
httpproxy shop/slow-start
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].services[0].slowStartPolicy is not supported; remove it
  parents: shop/root prefix /slow-start -> shop/slow-start
    HTTPProxy shop/root#prefix /slow-start
    fqdn: shop.test
    currentStatus: invalid
    description: spec.routes[0].services[0].slowStartPolicy is not supported; remove it
httpproxy shop/unverified
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    ServiceError=True UnsupportedField: Service [web:80] TLS without validation is not supported; add validation with caSecret and subjectName
  parents: shop/root prefix /unverified -> shop/unverified
    HTTPProxy shop/root#prefix /unverified
    fqdn: shop.test
    currentStatus: invalid
    description: Service [web:80] TLS without validation is not supported; add validation with caSecret and subjectName
httpproxy shop/dynamic
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    RouteError=True HeaderPolicyNotValid: spec.routes[0].requestHeadersPolicy.set[0]: dynamic values (%…%) are not supported; write a value as it is
  parents: shop/root prefix /dynamic -> shop/dynamic
    HTTPProxy shop/root#prefix /dynamic
    fqdn: shop.test
    currentStatus: invalid
    description: spec.routes[0].requestHeadersPolicy.set[0]: dynamic values (%…%) are not supported; write a value as it is
httpproxy shop/body
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].directResponsePolicy.body is not supported; remove it
  parents: shop/root prefix /body -> shop/body
    HTTPProxy shop/root#prefix /body
    fqdn: shop.test
    currentStatus: invalid
    description: spec.routes[0].directResponsePolicy.body is not supported; remove it
httpproxy shop/auth
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].authPolicy is not supported; remove it
  parents: shop/root prefix /auth -> shop/auth
    HTTPProxy shop/root#prefix /auth
    fqdn: shop.test
    currentStatus: invalid
    description: spec.routes[0].authPolicy is not supported; remove it
httpproxy shop/rate
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].rateLimitPolicy is not supported; remove it
  parents: shop/root prefix /rate -> shop/rate
    HTTPProxy shop/root#prefix /rate
    fqdn: shop.test
    currentStatus: invalid
    description: spec.routes[0].rateLimitPolicy is not supported; remove it
httpproxy shop/jwt
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].jwtVerificationPolicy is not supported; remove it
  parents: shop/root prefix /jwt -> shop/jwt
    HTTPProxy shop/root#prefix /jwt
    fqdn: shop.test
    currentStatus: invalid
    description: spec.routes[0].jwtVerificationPolicy is not supported; remove it
httpproxy shop/internal
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].internalRedirectPolicy is not supported; remove it
  parents: shop/root prefix /internal -> shop/internal
    HTTPProxy shop/root#prefix /internal
    fqdn: shop.test
    currentStatus: invalid
    description: spec.routes[0].internalRedirectPolicy is not supported; remove it
httpproxy shop/allow
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].ipAllowPolicy is not supported; remove it
  parents: shop/root prefix /allow -> shop/allow
    HTTPProxy shop/root#prefix /allow
    fqdn: shop.test
    currentStatus: invalid
    description: spec.routes[0].ipAllowPolicy is not supported; remove it
httpproxy shop/deny
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    SpecError=True UnsupportedField: spec.routes[0].ipDenyPolicy is not supported; remove it
  parents: shop/root prefix /deny -> shop/deny
    HTTPProxy shop/root#prefix /deny
    fqdn: shop.test
    currentStatus: invalid
    description: spec.routes[0].ipDenyPolicy is not supported; remove it
httpproxy shop/other-root
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy shop/services
  currentStatus: invalid
  description: At least one error present, see Errors for details
  Valid=False ErrorPresent: At least one error present, see Errors for details
    ServiceError=True ServiceUnresolvedReference: Spec.Routes unresolved service reference: service "shop/gone" has no port 80, or is missing
  parents: shop/root prefix /services -> shop/services
    HTTPProxy shop/root#prefix /services
    fqdn: shop.test
    currentStatus: invalid
    description: Spec.Routes unresolved service reference: service "shop/gone" has no port 80, or is missing

== validate
  warning: HTTPProxy shop/root: default serves it in part: PartiallyInvalid: include shop/missing not found; root httpproxy cannot include another root httpproxy
  warning: HTTPProxy shop/cookies: HTTPProxy shop/root does not serve it: Invalid: spec.routes[0].cookieRewritePolicies is not supported; remove it
  warning: HTTPProxy shop/slow-start: HTTPProxy shop/root does not serve it: Invalid: spec.routes[0].services[0].slowStartPolicy is not supported; remove it
  warning: HTTPProxy shop/unverified: HTTPProxy shop/root does not serve it: Invalid: Service [web:80] TLS without validation is not supported; add validation with caSecret and subjectName
  warning: HTTPProxy shop/dynamic: HTTPProxy shop/root does not serve it: Invalid: spec.routes[0].requestHeadersPolicy.set[0]: dynamic values (%…%) are not supported; write a value as it is
  warning: HTTPProxy shop/body: HTTPProxy shop/root does not serve it: Invalid: spec.routes[0].directResponsePolicy.body is not supported; remove it
  warning: HTTPProxy shop/auth: HTTPProxy shop/root does not serve it: Invalid: spec.routes[0].authPolicy is not supported; remove it
  warning: HTTPProxy shop/rate: HTTPProxy shop/root does not serve it: Invalid: spec.routes[0].rateLimitPolicy is not supported; remove it
  warning: HTTPProxy shop/jwt: HTTPProxy shop/root does not serve it: Invalid: spec.routes[0].jwtVerificationPolicy is not supported; remove it
  warning: HTTPProxy shop/internal: HTTPProxy shop/root does not serve it: Invalid: spec.routes[0].internalRedirectPolicy is not supported; remove it
  warning: HTTPProxy shop/allow: HTTPProxy shop/root does not serve it: Invalid: spec.routes[0].ipAllowPolicy is not supported; remove it
  warning: HTTPProxy shop/deny: HTTPProxy shop/root does not serve it: Invalid: spec.routes[0].ipDenyPolicy is not supported; remove it
  warning: HTTPProxy shop/services: HTTPProxy shop/root serves it in part: PartiallyInvalid: Spec.Routes unresolved service reference: service "shop/gone" has no port 80, or is missing
