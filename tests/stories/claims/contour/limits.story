Delegations that go too far
claims: IngressRoute Limits

The way to the last object has 65 objects, one more than is followed.

== manifests
apiVersion: contour.heptio.com/v1beta1
kind: IngressRoute
metadata: {name: root, namespace: shop}
spec: {virtualhost: {fqdn: shop.test}, routes: [{match: /, services: [{name: web, port: 80}]}, {match: /a, delegate: {name: n2}}]}
---
apiVersion: v1
kind: List
items:
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n2, namespace: shop}, spec: {routes: [{match: /a/2, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n3}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n3, namespace: shop}, spec: {routes: [{match: /a/last/3, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n4}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n4, namespace: shop}, spec: {routes: [{match: /a/last/4, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n5}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n5, namespace: shop}, spec: {routes: [{match: /a/last/5, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n6}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n6, namespace: shop}, spec: {routes: [{match: /a/last/6, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n7}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n7, namespace: shop}, spec: {routes: [{match: /a/last/7, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n8}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n8, namespace: shop}, spec: {routes: [{match: /a/last/8, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n9}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n9, namespace: shop}, spec: {routes: [{match: /a/last/9, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n10}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n10, namespace: shop}, spec: {routes: [{match: /a/last/10, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n11}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n11, namespace: shop}, spec: {routes: [{match: /a/last/11, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n12}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n12, namespace: shop}, spec: {routes: [{match: /a/last/12, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n13}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n13, namespace: shop}, spec: {routes: [{match: /a/last/13, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n14}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n14, namespace: shop}, spec: {routes: [{match: /a/last/14, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n15}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n15, namespace: shop}, spec: {routes: [{match: /a/last/15, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n16}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n16, namespace: shop}, spec: {routes: [{match: /a/last/16, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n17}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n17, namespace: shop}, spec: {routes: [{match: /a/last/17, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n18}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n18, namespace: shop}, spec: {routes: [{match: /a/last/18, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n19}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n19, namespace: shop}, spec: {routes: [{match: /a/last/19, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n20}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n20, namespace: shop}, spec: {routes: [{match: /a/last/20, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n21}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n21, namespace: shop}, spec: {routes: [{match: /a/last/21, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n22}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n22, namespace: shop}, spec: {routes: [{match: /a/last/22, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n23}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n23, namespace: shop}, spec: {routes: [{match: /a/last/23, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n24}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n24, namespace: shop}, spec: {routes: [{match: /a/last/24, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n25}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n25, namespace: shop}, spec: {routes: [{match: /a/last/25, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n26}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n26, namespace: shop}, spec: {routes: [{match: /a/last/26, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n27}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n27, namespace: shop}, spec: {routes: [{match: /a/last/27, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n28}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n28, namespace: shop}, spec: {routes: [{match: /a/last/28, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n29}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n29, namespace: shop}, spec: {routes: [{match: /a/last/29, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n30}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n30, namespace: shop}, spec: {routes: [{match: /a/last/30, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n31}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n31, namespace: shop}, spec: {routes: [{match: /a/last/31, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n32}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n32, namespace: shop}, spec: {routes: [{match: /a/last/32, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n33}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n33, namespace: shop}, spec: {routes: [{match: /a/last/33, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n34}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n34, namespace: shop}, spec: {routes: [{match: /a/last/34, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n35}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n35, namespace: shop}, spec: {routes: [{match: /a/last/35, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n36}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n36, namespace: shop}, spec: {routes: [{match: /a/last/36, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n37}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n37, namespace: shop}, spec: {routes: [{match: /a/last/37, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n38}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n38, namespace: shop}, spec: {routes: [{match: /a/last/38, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n39}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n39, namespace: shop}, spec: {routes: [{match: /a/last/39, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n40}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n40, namespace: shop}, spec: {routes: [{match: /a/last/40, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n41}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n41, namespace: shop}, spec: {routes: [{match: /a/last/41, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n42}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n42, namespace: shop}, spec: {routes: [{match: /a/last/42, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n43}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n43, namespace: shop}, spec: {routes: [{match: /a/last/43, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n44}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n44, namespace: shop}, spec: {routes: [{match: /a/last/44, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n45}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n45, namespace: shop}, spec: {routes: [{match: /a/last/45, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n46}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n46, namespace: shop}, spec: {routes: [{match: /a/last/46, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n47}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n47, namespace: shop}, spec: {routes: [{match: /a/last/47, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n48}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n48, namespace: shop}, spec: {routes: [{match: /a/last/48, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n49}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n49, namespace: shop}, spec: {routes: [{match: /a/last/49, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n50}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n50, namespace: shop}, spec: {routes: [{match: /a/last/50, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n51}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n51, namespace: shop}, spec: {routes: [{match: /a/last/51, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n52}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n52, namespace: shop}, spec: {routes: [{match: /a/last/52, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n53}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n53, namespace: shop}, spec: {routes: [{match: /a/last/53, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n54}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n54, namespace: shop}, spec: {routes: [{match: /a/last/54, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n55}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n55, namespace: shop}, spec: {routes: [{match: /a/last/55, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n56}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n56, namespace: shop}, spec: {routes: [{match: /a/last/56, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n57}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n57, namespace: shop}, spec: {routes: [{match: /a/last/57, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n58}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n58, namespace: shop}, spec: {routes: [{match: /a/last/58, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n59}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n59, namespace: shop}, spec: {routes: [{match: /a/last/59, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n60}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n60, namespace: shop}, spec: {routes: [{match: /a/last/60, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n61}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n61, namespace: shop}, spec: {routes: [{match: /a/last/61, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n62}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n62, namespace: shop}, spec: {routes: [{match: /a/last/62, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n63}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n63, namespace: shop}, spec: {routes: [{match: /a/last/63, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n64}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n64, namespace: shop}, spec: {routes: [{match: /a/last/64, services: [{name: part, port: 80}]}, {match: /a/last, delegate: {name: n65}}]}}
- {apiVersion: contour.heptio.com/v1beta1, kind: IngressRoute, metadata: {name: n65, namespace: shop}, spec: {routes: [{match: /a/last, services: [{name: part, port: 80}]}]}}

== backends
web: http for=shop/web
part: http for=shop/part

== requests
$ curl http://shop.test/
  HTTP/1.1 200 OK
  web saw GET / HTTP/1.1
  explain: IngressRoute shop/root gets it, on 1 endpoint
$ curl http://shop.test/a/2
  HTTP/1.1 200 OK
  part saw GET /a/2 HTTP/1.1
  explain: IngressRoute shop/n2 gets it, on 1 endpoint
$ curl http://shop.test/a/last/64
  HTTP/1.1 200 OK
  part saw GET /a/last/64 HTTP/1.1
  explain: IngressRoute shop/n64 gets it, on 1 endpoint
# This part is nobody's: the root has it.
$ curl http://shop.test/a/last
  HTTP/1.1 200 OK
  web saw GET /a/last HTTP/1.1
  explain: IngressRoute shop/root gets it, on 1 endpoint

== status
ingressroute shop/root
  currentStatus: valid
  description: valid IngressRoute
ingressroute shop/n64
  currentStatus: invalid
  description: too many delegations below shop.test: use at most 64 in a row, 2000 in all, and 100000 below all roots of a namespace
  parents: shop/root /a -> shop/n2 /a/last -> shop/n3 /a/last -> shop/n4 /a/last -> shop/n5 /a/last -> shop/n6 /a/last -> shop/n7 /a/last -> shop/n8 /a/last -> shop/n9 /a/last -> shop/n10 /a/last -> shop/n11 /a/last -> shop/n12 /a/last -> shop/n13 /a/last -> shop/n14 /a/last -> shop/n15 /a/last -> shop/n16 /a/last -> shop/n17 /a/last -> shop/n18 /a/last -> shop/n19 /a/last -> shop/n20 /a/last -> shop/n21 /a/last -> shop/n22 /a/last -> shop/n23 /a/last -> shop/n24 /a/last -> shop/n25 /a/last -> shop/n26 /a/last -> shop/n27 /a/last -> shop/n28 /a/last -> shop/n29 /a/last -> shop/n30 /a/last -> shop/n31 /a/last -> shop/n32 /a/last -> shop/n33 /a/last -> shop/n34 /a/last -> shop/n35 /a/last -> shop/n36 /a/last -> shop/n37 /a/last -> shop/n38 /a/last -> shop/n39 /a/last -> shop/n40 /a/last -> shop/n41 /a/last -> shop/n42 /a/last -> shop/n43 /a/last -> shop/n44 /a/last -> shop/n45 /a/last -> shop/n46 /a/last -> shop/n47 /a/last -> shop/n48 /a/last -> shop/n49 /a/last -> shop/n50 /a/last -> shop/n51 /a/last -> shop/n52 /a/last -> shop/n53 /a/last -> shop/n54 /a/last -> shop/n55 /a/last -> shop/n56 /a/last -> shop/n57 /a/last -> shop/n58 /a/last -> shop/n59 /a/last -> shop/n60 /a/last -> shop/n61 /a/last -> shop/n62 /a/last -> shop/n63 /a/last -> shop/n64
    IngressRoute shop/n63#/a/last
    fqdn: shop.test
    currentStatus: invalid
    description: too many delegations below shop.test: use at most 64 in a row, 2000 in all, and 100000 below all roots of a namespace
ingressroute shop/n65
  currentStatus: orphaned
  description: this IngressRoute is not part of a delegation chain from a root IngressRoute
