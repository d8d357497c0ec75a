Addresses that no endpoint may have
claims: --endpoint-addresses

A tenant who writes EndpointSlices reaches neither the router's host nor the cloud's metadata.

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: loopback, namespace: shop}
spec: {host: loopback.apps.test, to: {kind: Service, name: loopback}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: metadata, namespace: shop}
spec: {host: metadata.apps.test, to: {kind: Service, name: metadata}}

== backends
loopback: http at=127.0.0.1:3000 for=shop/loopback
metadata: http at=169.254.169.254:3000 for=shop/metadata

== requests
$ curl http://loopback.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-endpoints
  explain: 503: Route shop/loopback has it, but no service of it has a usable endpoint
    fix: the endpoint addresses of Service shop/loopback are loopback, link-local or metadata addresses, which are left out; --endpoint-addresses any admits them
$ curl http://metadata.apps.test/
  HTTP/1.1 503 Service Unavailable
    x-sluice-cause: no-endpoints
  explain: 503: Route shop/metadata has it, but no service of it has a usable endpoint
    fix: the endpoint addresses of Service shop/metadata are loopback, link-local or metadata addresses, which are left out; --endpoint-addresses any admits them

== validate
  warning: Route shop/loopback: spec.to: the endpoint addresses of Service shop/loopback are loopback, link-local or metadata addresses, which are left out; --endpoint-addresses any admits them
  warning: Route shop/metadata: spec.to: the endpoint addresses of Service shop/metadata are loopback, link-local or metadata addresses, which are left out; --endpoint-addresses any admits them
