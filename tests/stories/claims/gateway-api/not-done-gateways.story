Gateways and listeners that ask for what is not done
claims: GatewayClass.spec.parametersRef, Gateway.spec.infrastructure.parametersRef, Gateway.spec.tls.frontend, backend, allowedListeners, defaultScope, listeners[].tls.options, TCP, UDP

A Gateway that does is not served; a listener that does harms no other.

== manifests
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: sluice}
spec: {controllerName: sluice.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: tuned}
spec:
  controllerName: sluice.dev/gateway-controller
  parametersRef: {group: "", kind: ConfigMap, name: parameters, namespace: shop}
---
apiVersion: v1
kind: Secret
metadata: {name: pair, namespace: shop}
type: kubernetes.io/tls
stringData: {tls.crt: {{cert fine.test}}, tls.key: {{key fine.test}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: of-class, namespace: shop}
spec:
  gatewayClassName: tuned
  listeners: [{name: web, port: 80, protocol: HTTP, hostname: class.test}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: parameters, namespace: shop}
spec:
  gatewayClassName: sluice
  infrastructure: {parametersRef: {group: "", kind: ConfigMap, name: parameters}}
  listeners: [{name: web, port: 80, protocol: HTTP, hostname: parameters.test}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: frontend, namespace: shop}
spec:
  gatewayClassName: sluice
  tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}}}
  listeners: [{name: tls, port: 443, protocol: HTTPS, hostname: frontend.test, tls: {certificateRefs: [{name: pair}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: backend, namespace: shop}
spec:
  gatewayClassName: sluice
  tls: {backend: {clientCertificateRef: {name: pair}}}
  listeners: [{name: web, port: 80, protocol: HTTP, hostname: backend.test}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: sets, namespace: shop}
spec:
  gatewayClassName: sluice
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: web, port: 80, protocol: HTTP, hostname: sets.test}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: scope, namespace: shop}
spec:
  gatewayClassName: sluice
  defaultScope: All
  listeners: [{name: web, port: 80, protocol: HTTP, hostname: scope.test}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: listeners, namespace: shop}
spec:
  gatewayClassName: sluice
  allowedListeners: {namespaces: {from: None}}
  listeners:
  - {name: tcp, port: 9000, protocol: TCP}
  - {name: udp, port: 9001, protocol: UDP}
  - {name: own, port: 9002, protocol: example.com/telnet}
  - {name: options, port: 443, protocol: HTTPS, hostname: options.test, tls: {certificateRefs: [{name: pair}], options: {example.com/minimum: "1.3"}}}
  - {name: fine, port: 443, protocol: HTTPS, hostname: fine.test, tls: {certificateRefs: [{name: pair}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs:
  - {name: of-class}
  - {name: parameters}
  - {name: frontend}
  - {name: backend}
  - {name: sets}
  - {name: scope}
  - {name: listeners}
  rules: [{backendRefs: [{name: web, port: 80}]}]

== backends
web: http for=shop/web

== requests
$ curl http://class.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/of-class claims it and is not served: #web: Pending: GatewayClass tuned is not accepted
    fix: correct Gateway shop/of-class as its condition says; `sluice validate` shows the place
$ curl http://parameters.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/parameters claims it and is not served: #web: InvalidParameters: spec.infrastructure.parametersRef: no kind of parameters is known; remove the field
    fix: correct Gateway shop/parameters as its condition says; `sluice validate` shows the place
$ curl --insecure https://frontend.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: Gateway shop/frontend claims it and is not served: #tls: Invalid: spec.tls.frontend: clients' certificates are not checked for Gateways; remove it, or use an IngressController's clientTLS
    fix: correct Gateway shop/frontend as its condition says; `sluice validate` shows the place
$ curl http://backend.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/backend claims it and is not served: #web: Invalid: spec.tls.backend: no certificate is shown to backends; remove it
    fix: correct Gateway shop/backend as its condition says; `sluice validate` shows the place
$ curl http://sets.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/sets claims it and is not served: #web: Invalid: spec.allowedListeners: ListenerSets are not read; remove it, and write listeners here
    fix: correct Gateway shop/sets as its condition says; `sluice validate` shows the place
$ curl http://scope.test/
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: Gateway shop/scope claims it and is not served: #web: Invalid: spec.defaultScope: Sluice has no default Gateways; remove it, and name the Gateway in parentRefs of routes
    fix: correct Gateway shop/scope as its condition says; `sluice validate` shows the place
$ curl --insecure https://options.test/
  HTTP/2 404
    x-sluice-cause: no-match
  explain: 404: Gateway shop/listeners claims it and is not served: #options: UnsupportedValue: spec.listeners[3].tls.options[example.com/minimum]: no TLS option is known; remove it
    fix: correct Gateway shop/listeners as its condition says; `sluice validate` shows the place
$ curl https://fine.test/
  HTTP/2 200
  web saw GET / HTTP/1.1
  explain: HTTPRoute shop/shop gets it, on 1 endpoint

== status
gatewayclass tuned
  Accepted=False InvalidParameters: spec.parametersRef: no kind of parameters is known; remove the field
  SupportedVersion=True
gateway shop/of-class
  Accepted=False Pending: GatewayClass tuned is not accepted
  Programmed=False Invalid: no listener takes traffic
  ResolvedRefs=True
  listeners: web
    attachedRoutes: 0
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the Gateway is not accepted
gateway shop/parameters
  Accepted=False InvalidParameters: spec.infrastructure.parametersRef: no kind of parameters is known; remove the field
  Programmed=False Invalid: no listener takes traffic
  ResolvedRefs=True
  listeners: web
    attachedRoutes: 0
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the Gateway is not accepted
gateway shop/frontend
  Accepted=False Invalid: spec.tls.frontend: clients' certificates are not checked for Gateways; remove it, or use an IngressController's clientTLS
  Programmed=False Invalid: no listener takes traffic
  ResolvedRefs=True
  listeners: tls
    attachedRoutes: 0
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the Gateway is not accepted
gateway shop/backend
  Accepted=False Invalid: spec.tls.backend: no certificate is shown to backends; remove it
  Programmed=False Invalid: no listener takes traffic
  ResolvedRefs=True
  listeners: web
    attachedRoutes: 0
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the Gateway is not accepted
gateway shop/sets
  Accepted=False Invalid: spec.allowedListeners: ListenerSets are not read; remove it, and write listeners here
  Programmed=False Invalid: no listener takes traffic
  ResolvedRefs=True
  listeners: web
    attachedRoutes: 0
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the Gateway is not accepted
gateway shop/scope
  Accepted=False Invalid: spec.defaultScope: Sluice has no default Gateways; remove it, and name the Gateway in parentRefs of routes
  Programmed=False Invalid: no listener takes traffic
  ResolvedRefs=True
  listeners: web
    attachedRoutes: 0
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the Gateway is not accepted
gateway shop/listeners
  Accepted=True ListenersNotValid: listeners are not accepted: tcp, udp, own, options
  Programmed=True
  ResolvedRefs=True
  listeners: tcp
    attachedRoutes: 0
    Accepted=False UnsupportedProtocol: protocol "TCP" is not supported; write HTTP, HTTPS (mode Terminate) or TLS
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the listener is not accepted
  listeners: udp
    attachedRoutes: 0
    Accepted=False UnsupportedProtocol: protocol "UDP" is not supported; write HTTP, HTTPS (mode Terminate) or TLS
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the listener is not accepted
  listeners: own
    attachedRoutes: 0
    Accepted=False UnsupportedProtocol: protocol "example.com/telnet" is not supported; write HTTP, HTTPS (mode Terminate) or TLS
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the listener is not accepted
  listeners: options
    attachedRoutes: 1
    Accepted=False UnsupportedValue: spec.listeners[3].tls.options[example.com/minimum]: no TLS option is known; remove it
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=False Invalid: the listener is not accepted
  listeners: fine
    attachedRoutes: 1
    Accepted=True
    Conflicted=False NoConflicts
    ResolvedRefs=True
    Programmed=True
httproute shop/shop
  parents:
    Gateway of-class
    Accepted=False NoReadyListeners: Gateway shop/of-class is not accepted: GatewayClass tuned is not accepted
    ResolvedRefs=True
  parents:
    Gateway parameters
    Accepted=False NoReadyListeners: Gateway shop/parameters is not accepted: spec.infrastructure.parametersRef: no kind of parameters is known; remove the field
    ResolvedRefs=True
  parents:
    Gateway frontend
    Accepted=False NoReadyListeners: Gateway shop/frontend is not accepted: spec.tls.frontend: clients' certificates are not checked for Gateways; remove it, or use an IngressController's clientTLS
    ResolvedRefs=True
  parents:
    Gateway backend
    Accepted=False NoReadyListeners: Gateway shop/backend is not accepted: spec.tls.backend: no certificate is shown to backends; remove it
    ResolvedRefs=True
  parents:
    Gateway sets
    Accepted=False NoReadyListeners: Gateway shop/sets is not accepted: spec.allowedListeners: ListenerSets are not read; remove it, and write listeners here
    ResolvedRefs=True
  parents:
    Gateway scope
    Accepted=False NoReadyListeners: Gateway shop/scope is not accepted: spec.defaultScope: Sluice has no default Gateways; remove it, and name the Gateway in parentRefs of routes
    ResolvedRefs=True
  parents:
    Gateway listeners
    Accepted=True
    ResolvedRefs=True
