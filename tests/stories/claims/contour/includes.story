A part of a host is another namespace's
claims: HTTPProxy includes

== manifests
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: root, namespace: shop}
spec:
  virtualhost: {fqdn: shop.test}
  includes:
  - {name: blog, namespace: blog, conditions: [{prefix: /blog}]}
  routes:
  - services: [{name: web, port: 80}]
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: blog, namespace: blog}
spec:
  routes:
  - services: [{name: web, port: 80}]

== backends
shop: http for=shop/web
blog: http for=blog/web

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  shop saw GET / HTTP/1.1
  explain: HTTPProxy shop/root gets it, on 1 endpoint
$ curl http://shop.test/blog/1
  HTTP/1.1 200 OK
  blog saw GET /blog/1 HTTP/1.1
  explain: HTTPProxy blog/blog gets it, on 1 endpoint
$ curl http://other.test/blog/1
  HTTP/1.1 404 Not Found
    x-sluice-cause: no-match
  explain: 404: no object of router default has other.test
    fix: create a Route with host other.test

== status
httpproxy shop/root
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
httpproxy blog/blog
  currentStatus: valid
  description: Valid HTTPProxy
  Valid=True: Valid HTTPProxy
  parents: shop/root prefix /blog -> blog/blog
    HTTPProxy shop/root#prefix /blog
    fqdn: shop.test
    currentStatus: valid
    description: valid HTTPProxy
