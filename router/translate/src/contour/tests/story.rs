//! The document's example of subdomain delegation: `mail` and `www` of mycompany.com use the wildcard certificate in
//! mycompany's namespace; `mail` is in another namespace.

use super::*;

fn root() -> Value {
    ingress_route(
        "mycompany/domain-root",
        json!({
            "virtualhost": { "fqdn": ".mycompany.com", "tls": { "secretName": "mycompany-wildcard-tls" } },
            "subdomains": [
                { "subdomain": "mail.mycompany.com", "delegate": { "name": "mail", "namespace": "msexchange" } },
                { "subdomain": "www.mycompany.com", "delegate": { "name": "wordpress" } },
            ],
        }),
    )
}

fn objects() -> Vec<Value> {
    let mut objects = backends(&["msexchange/owa", "msexchange/activesync", "mycompany/php"]);
    objects.extend([
        root(),
        secret("mycompany/mycompany-wildcard-tls", &["*.mycompany.com"]),
        secret("msexchange/own-tls", &["mail.mycompany.com"]),
        ingress_route(
            "msexchange/mail",
            json!({
                "routes": [
                    { "match": "/", "services": to("owa") },
                    { "match": "/Microsoft-Server-ActiveSync", "services": to("activesync") },
                ],
            }),
        ),
        ingress_route("mycompany/wordpress", json!({ "routes": [{ "match": "/", "services": to("php") }] })),
    ]);
    objects
}

#[test]
fn the_wildcard_certificate_serves_the_subdomains() {
    let world = World::new(objects());
    for (url, expected) in [
        ("https://mail.mycompany.com/", "msexchange/owa"),
        ("https://mail.mycompany.com/Microsoft-Server-ActiveSync", "msexchange/activesync"),
        ("https://mail.mycompany.com/Microsoft-Server-ActiveSyncs", "msexchange/owa"),
        ("https://www.mycompany.com/blog", "mycompany/php"),
        ("http://mail.mycompany.com/", "301 https"),
        ("https://ftp.mycompany.com/", "-"),
        ("https://mycompany.com/", "-"),
    ] {
        assert_eq!(world.get(url), expected, "{url}");
    }
    assert_eq!(world.certificate("mail.mycompany.com"), "mycompany/mycompany-wildcard-tls");
    assert_eq!(world.certificate("www.mycompany.com"), "mycompany/mycompany-wildcard-tls");
    assert_eq!(world.certificate("ftp.mycompany.com"), "-");
}

#[test]
fn every_object_has_a_status() {
    let world = World::new(objects());
    assert_eq!(
        world.status_value(Kind::IngressRoute, "mycompany/domain-root"),
        json!({ "currentStatus": "valid", "description": "valid IngressRoute (2 of 2 subdomains)" })
    );
    let delegate = |id: &str, section: &str| {
        json!({
            "currentStatus": "valid",
            "description": "valid IngressRoute",
            "parents": [{
                "parentRef": {
                    "group": "contour.heptio.com", "kind": "IngressRoute",
                    "namespace": "mycompany", "name": "domain-root", "sectionName": section,
                },
                "controllerName": "sluice.dev/gateway-controller",
                "fqdn": section,
                "path": format!("mycompany/domain-root {section} -> {id}"),
                "currentStatus": "valid",
                "description": "valid IngressRoute",
            }],
        })
    };
    for (id, section) in [("msexchange/mail", "mail.mycompany.com"), ("mycompany/wordpress", "www.mycompany.com")] {
        assert_eq!(world.status_value(Kind::IngressRoute, id), delegate(id, section));
    }
}

#[test]
fn a_subdomain_with_tls_of_its_own_is_served_with_that() {
    let mut objects = objects();
    for object in &mut objects {
        if object["metadata"]["name"] == "mail" {
            object["spec"]["virtualhost"] = json!({ "fqdn": "mail.mycompany.com", "tls": { "secretName": "own-tls" } });
        }
    }
    let world = World::new(objects);
    assert_eq!(world.certificate("mail.mycompany.com"), "msexchange/own-tls");
    assert_eq!(world.certificate("www.mycompany.com"), "mycompany/mycompany-wildcard-tls");
}

#[test]
fn the_delegate_cannot_name_the_certificate_itself() {
    let mut objects = objects();
    for object in &mut objects {
        if object["metadata"]["name"] == "mail" {
            let tls = json!({ "secretName": "mycompany/mycompany-wildcard-tls" });
            object["spec"]["virtualhost"] = json!({ "tls": tls });
        }
    }
    let world = World::new(objects);
    assert_eq!(
        world.ingress("msexchange/mail"),
        "invalid: mycompany/mycompany-wildcard-tls: certificate delegation not permitted"
    );
    assert_eq!(world.get("https://mail.mycompany.com/"), "-");
    assert_eq!(world.get("https://www.mycompany.com/"), "mycompany/php");
}
