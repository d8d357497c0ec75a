An endpoint whose certificate is of X.509 version 1
claims: Route.spec.tls.destinationCACertificate
mask: client=\S+|duration\S*=\S+

`openssl x509 -req` makes such certificates, which have no extensions. They are not accepted, whoever has signed them, and the answer
says why.

== manifests
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: old, namespace: shop}
spec:
  host: old.apps.test
  to: {kind: Service, name: old}
  tls:
    termination: reencrypt
    certificate: {{cert old.apps.test}}
    key: {{key old.apps.test}}
    destinationCACertificate: {{ca inside}}

== backends
old: https for=shop/old:443 "cert=old.shop.svc by inside v1"

== requests
$ curl https://old.apps.test/
! the certificate is known when the endpoint shows it
  HTTP/2 502
    x-sluice-cause: backend-certificate-version
  explain: Route shop/old gets it, on 1 endpoint
$ log 1
  router=default … listener=10.0.0.1:443 host="old.apps.test" method="GET" path="/" status=502 route=shop/old endpoint=10.1.0.1:3000 bytes_in=0 bytes_out=181 … flags="UV" cause="backend-certificate-version" datapath="proxy"
