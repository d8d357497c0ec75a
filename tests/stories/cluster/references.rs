//! Changes of objects that others depend on, in the real API server and in the mock.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use rustls::client::Resumption;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};
use tests::client::trusting;
use tests::pki::{Ca, Leaf};
use tests::wait::{PATIENCE, wait_until};

use super::gateways::{GATEWAY_API, OURS, of, with_class};
use super::rows;
use super::site::{ONE, ROUTES, Site, route_object};

const NAMESPACES: &str = "/api/v1/namespaces";
const CONTROLLERS: &str = "/apis/operator.openshift.io/v1/namespaces/openshift-ingress-operator/ingresscontrollers";

/// A story on a site.
type Story = fn(&Site) -> Result<()>;

/// What both servers are tried with.
const STORIES: [(&str, Story); 6] = [
    ("rotation", a_certificate_is_rotated_without_a_failed_handshake),
    ("grant", a_grant_opens_and_closes),
    ("shard", labels_of_a_namespace_move_its_routes),
    ("class", a_gateway_of_another_class_is_not_touched),
    ("race", rows::outlast_races),
    ("finalizer", an_object_serves_until_it_is_gone),
];

#[test]
fn each_dependency_is_followed_in_the_real_api_server() -> Result<()> {
    let site = Site::real()?;
    site.service("web", ONE)?;
    site.route("a", "web")?;
    STORIES.iter().try_for_each(|(what, story)| story(&site).context(*what))
}

#[test]
fn each_dependency_is_followed_in_the_mock() -> Result<()> {
    STORIES.iter().try_for_each(|(what, story)| {
        let site = Site::mock_with_route()?;
        site.mocked()?.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test"}}))?;
        story(&site).context(*what)
    })
}

/// A Secret with a certificate, of the namespace of its collection.
pub fn secret(name: &str, leaf: &Leaf) -> Value {
    let data = |text: &str| BASE64_STANDARD.encode(text);
    json!({
        "metadata": {"name": name},
        "type": "kubernetes.io/tls",
        "data": {"tls.crt": data(&leaf.certificate), "tls.key": data(&leaf.key)},
    })
}

/// Each certificate is stored after a handshake with an earlier one, whether the latest is presented already or not.
fn a_certificate_is_rotated_without_a_failed_handshake(site: &Site) -> Result<()> {
    const ROTATIONS: usize = 1_000;
    /// Number of rotations after which the certificate is waited for.
    const WAITED: usize = 50;
    let (ca, api) = (Ca::new()?, site.api()?);
    let (name, other) = ("rotated.apps.test", "steady.apps.test");
    let leaves = (0..=ROTATIONS).map(|_| ca.leaf(name)).collect::<Result<Vec<_>>>()?;
    let der = |leaf: &Leaf| CertificateDer::from_pem_slice(leaf.certificate.as_bytes());
    let certificates: Vec<_> = leaves.iter().map(der).collect::<Result<_, _>>()?;
    let steady = ca.leaf(other)?;
    let secrets = "/api/v1/namespaces/test/secrets";
    for (name, leaf) in [("rotated", &leaves[0]), ("steady", &steady)] {
        api.create(secrets, &secret(name, leaf))?;
        let mut route = route_object(name, "web");
        route["spec"]["tls"] = json!({"termination": "edge", "externalCertificate": {"name": name}});
        api.create(ROUTES, &route)?;
    }
    let _sluice = site.serve()?;
    let mut trust = trusting(ca.pem().as_bytes())?;
    // Full handshakes only, so that each presents a certificate.
    trust.resumption = Resumption::disabled();
    let trust = Arc::new(trust);
    let presents = |name: &str| site.handshake(name, 8443, &trust);
    wait_until("both certificates are served", PATIENCE, || [name, other].iter().all(|name| presents(name).is_ok()))?;
    let (begin, mut shown) = (Instant::now(), 0);
    for (number, leaf) in leaves.iter().enumerate().skip(1) {
        api.patch(&format!("{secrets}/rotated"), &json!({"data": secret("rotated", leaf)["data"]}))?;
        let waited = Instant::now();
        loop {
            let presented = presents(name).with_context(|| format!("a handshake after rotation {number}"))?;
            let place = certificates.iter().position(|known| *known == presented).context("an unknown certificate")?;
            ensure!((shown..=number).contains(&place), "{place} after {shown} is presented after rotation {number}");
            shown = place;
            if shown == number || number % WAITED != 0 {
                break;
            }
            ensure!(waited.elapsed() < PATIENCE, "certificate {number} is not presented");
        }
        let untouched = presents(other).with_context(|| format!("a handshake of another host after {number}"))?;
        ensure!(untouched == der(&steady)?, "another host's certificate is not its own after rotation {number}");
    }
    println!("{ROTATIONS} rotations in {:.1?}", begin.elapsed());
    Ok(())
}

fn a_grant_opens_and_closes(site: &Site) -> Result<()> {
    let api = with_class(site, "granted", OURS)?;
    api.create(NAMESPACES, &json!({"metadata": {"name": "other"}}))?;
    let ca = Ca::new()?;
    let name = "granted.gw.test";
    api.create("/api/v1/namespaces/other/secrets", &secret("granted", &ca.leaf(name)?))?;
    let reference = json!({"name": "granted", "namespace": "other"});
    let listener = json!({
        "name": "secure", "port": 9443, "protocol": "HTTPS", "hostname": name, "tls": {"certificateRefs": [reference]},
    });
    let gateway = json!({
        "metadata": {"name": "granted"},
        "spec": {"gatewayClassName": "granted", "listeners": [listener]},
    });
    let gateways = format!("{GATEWAY_API}/v1/namespaces/test/gateways");
    api.create(&gateways, &of("v1", "Gateway", gateway))?;
    let _sluice = site.serve()?;
    let trust = Arc::new(trusting(ca.pem().as_bytes())?);
    let opens = || site.handshake(name, 9443, &trust).is_ok();
    let says = |reason: &str| {
        let gateway = api.get(&format!("{gateways}/granted")).unwrap_or_default();
        gateway["status"]["listeners"].to_string().contains(reason)
    };
    wait_until("the reference is not permitted", PATIENCE, || says("RefNotPermitted"))?;
    ensure!(!opens(), "a certificate of another namespace is used without a grant");
    let grants = format!("{GATEWAY_API}/v1beta1/namespaces/other/referencegrants");
    let grant = json!({
        "metadata": {"name": "granted"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "test"}],
            "to": [{"group": "", "kind": "Secret"}],
        },
    });
    for round in 0..3 {
        api.create(&grants, &of("v1beta1", "ReferenceGrant", grant.clone()))?;
        wait_until("a grant opens", PATIENCE, opens).with_context(|| format!("round {round}"))?;
        api.delete(&format!("{grants}/granted"))?;
        let closed = wait_until("a revoked grant closes", PATIENCE, || !opens())?;
        println!("closed {closed:.1?} after the grant was revoked");
    }
    wait_until("the reference is not permitted", PATIENCE, || says("RefNotPermitted")).map(drop)
}

fn labels_of_a_namespace_move_its_routes(site: &Site) -> Result<()> {
    let api = site.api()?;
    let network = json!({"httpPort": 8090, "httpsPort": 8493, "statsPort": 1937});
    let shard = json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "IngressController",
        "metadata": {"name": "shard"},
        "spec": {
            "domain": "shard.test",
            "namespaceSelector": {"matchLabels": {"shard": "own"}},
            "endpointPublishingStrategy": {"type": "HostNetwork", "hostNetwork": network},
        },
    });
    api.create(CONTROLLERS, &shard)?;
    let _sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    for (label, status, rows) in [
        (json!("own"), 200, vec!["default", "shard"]),
        (Value::Null, 503, vec!["default"]),
        (json!("own"), 200, vec!["default", "shard"]),
    ] {
        api.patch(&format!("{NAMESPACES}/test"), &json!({"metadata": {"labels": {"shard": label}}}))?;
        let what = format!("the shard answers {status}");
        wait_until(&what, PATIENCE, || site.get_at("a.apps.test", 8090).is_ok_and(|(found, _)| found == status))?;
        let of_route = || -> Option<Vec<String>> {
            let route = site.stored_route("a").ok()?;
            let rows = route["status"]["ingress"].as_array()?.iter();
            let mut names: Vec<String> = rows.filter_map(|row| Some(row["routerName"].as_str()?.to_owned())).collect();
            names.sort();
            Some(names)
        };
        wait_until(&format!("{rows:?}"), PATIENCE, || of_route().is_some_and(|found| found == rows))?;
        assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()), "of the router without a selector");
    }
    api.delete(&format!("{CONTROLLERS}/shard")).map(drop)
}

fn a_gateway_of_another_class_is_not_touched(site: &Site) -> Result<()> {
    let api = with_class(site, "theirs", "theirs.test/controller")?;
    with_class(site, "ours", OURS)?;
    let gateways = format!("{GATEWAY_API}/v1/namespaces/test/gateways");
    let gateway = |class: &str, port: u16| {
        let listener = json!({"name": "web", "port": port, "protocol": "HTTP"});
        of(
            "v1",
            "Gateway",
            json!({"metadata": {"name": class}, "spec": {"gatewayClassName": class, "listeners": [listener]}}),
        )
    };
    api.create(&gateways, &gateway("theirs", 8091))?;
    let status = json!({"addresses": [{"type": "IPAddress", "value": "192.0.2.1"}], "conditions": []});
    api.patch(&format!("{gateways}/theirs/status"), &json!({"status": status}))?;
    let paths = [format!("{gateways}/theirs"), format!("{GATEWAY_API}/v1/gatewayclasses/theirs")];
    let texts = || paths.iter().map(|path| Ok(api.get(path)?.to_string())).collect::<Result<Vec<_>>>();
    let before = texts()?;
    api.create(&gateways, &gateway("ours", 8092))?;
    let _sluice = site.serve()?;
    let is_programmed = |gateway: &Value| {
        let conditions = gateway["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|it| it["type"] == "Programmed" && it["status"] == "True")
    };
    api.wait_for(&gateways, "ours", PATIENCE, is_programmed)?;
    wait_until("ours listens", PATIENCE, || site.get_at("any.test", 8092).is_ok())?;
    assert_eq!(texts()?, before);
    ensure!(site.get_at("any.test", 8091).is_err(), "a Gateway of another class is served");
    Ok(())
}

fn an_object_serves_until_it_is_gone(site: &Site) -> Result<()> {
    let api = site.api()?;
    let mut route = route_object("held", "web");
    route["metadata"]["finalizers"] = json!(["theirs.test/hold"]);
    api.create(ROUTES, &route)?;
    let _sluice = site.serve()?;
    site.wait_for("held.apps.test", "one")?;
    let path = format!("{ROUTES}/held");
    api.delete(&path)?;
    ensure!(api.get(&path)?["metadata"]["deletionTimestamp"].is_string(), "the Route is not being deleted");
    // A later change has arrived, so the deletion has too.
    site.route("after", "web")?;
    site.wait_for("after.apps.test", "one")?;
    assert_eq!(site.get("held.apps.test")?, (200, "one".to_owned()));
    api.patch(&path, &json!({"metadata": {"finalizers": null}}))?;
    wait_until("it is gone", PATIENCE, || site.get("held.apps.test").is_ok_and(|(status, _)| status == 503))?;
    let (status, _) = api.request(http::Method::GET, &path, "", String::new())?;
    assert_eq!(status, StatusCode::NOT_FOUND);
    Ok(())
}
