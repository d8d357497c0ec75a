//! Changes of objects that others depend on, in the real API server and in the mock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result, ensure};
use http::StatusCode;
use serde_json::{Value, json};
use tests::client::trusting;
use tests::cluster::{Api, Definitions};
use tests::pki::{Ca, Leaf};
use tests::stream::joined;
use tests::wait::{PATIENCE, wait_until};

use super::site::{ONE, Site, route_object};

const NAMESPACES: &str = "/api/v1/namespaces";
const ROUTES: &str = "/apis/route.openshift.io/v1/namespaces/test/routes";
const CONTROLLERS: &str = "/apis/operator.openshift.io/v1/namespaces/openshift-ingress-operator/ingresscontrollers";
const GATEWAY_API: &str = "/apis/gateway.networking.k8s.io";

/// A story on a site.
type Story = fn(&Site) -> Result<()>;

/// What both servers are tried with.
const STORIES: [(&str, Story); 5] = [
    ("rotation", a_certificate_is_rotated_without_a_failed_handshake),
    ("grant", a_grant_opens_and_closes),
    ("shard", labels_of_a_namespace_move_its_routes),
    ("class", a_gateway_of_another_class_is_not_touched),
    ("finalizer", an_object_serves_until_it_is_gone),
];

/// A story on a site of its own with the mock.
fn on_the_mock(story: Story) -> Result<()> {
    let site = Site::mock_with_route()?;
    site.mocked()?.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test"}}))?;
    story(&site)
}

#[test]
fn each_dependency_is_followed_in_the_real_api_server() -> Result<()> {
    let site = Site::real()?;
    site.service("web", ONE)?;
    site.route("a", "web")?;
    STORIES.iter().try_for_each(|(what, story)| story(&site).context(*what))
}

#[test]
fn a_certificate_is_rotated_a_hundred_times_in_the_mock() -> Result<()> {
    on_the_mock(a_certificate_is_rotated_without_a_failed_handshake)
}

#[test]
fn a_grant_opens_and_closes_in_the_mock() -> Result<()> {
    on_the_mock(a_grant_opens_and_closes)
}

#[test]
fn labels_of_a_namespace_move_its_routes_in_the_mock() -> Result<()> {
    on_the_mock(labels_of_a_namespace_move_its_routes)
}

#[test]
fn a_gateway_of_another_class_is_not_touched_in_the_mock() -> Result<()> {
    on_the_mock(a_gateway_of_another_class_is_not_touched)
}

#[test]
fn an_object_with_a_finalizer_serves_until_it_is_gone_in_the_mock() -> Result<()> {
    on_the_mock(an_object_serves_until_it_is_gone)
}

fn secret(name: &str, leaf: &Leaf) -> Value {
    json!({
        "metadata": {"name": name},
        "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": leaf.certificate, "tls.key": leaf.key},
    })
}

/// A client whose collection of namespaces has this one.
fn with_namespace(site: &Site, name: &str) -> Result<Api> {
    let api = site.api()?;
    api.create(NAMESPACES, &json!({"metadata": {"name": name}}))?;
    Ok(api)
}

fn a_certificate_is_rotated_without_a_failed_handshake(site: &Site) -> Result<()> {
    const ROTATIONS: usize = 100;
    let (ca, api) = (Ca::new()?, site.api()?);
    let name = "rotated.apps.test";
    let leaves = [ca.leaf(name)?, ca.leaf(name)?];
    let secrets = "/api/v1/namespaces/test/secrets";
    api.create(secrets, &data_of(secret("rotated", &leaves[0])))?;
    let mut route = route_object("rotated", "web");
    route["spec"]["tls"] = json!({"termination": "edge", "externalCertificate": {"name": "rotated"}});
    api.create(ROUTES, &route)?;
    let _sluice = site.serve()?;
    let trust = std::sync::Arc::new(trusting(ca.pem().as_bytes())?);
    let presented = || site.handshake(name, 8443, &trust);
    wait_until("the certificate is served", PATIENCE, || presented().is_ok())?;
    let first = presented()?;
    let rotates = AtomicBool::new(true);
    let handshakes = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut handshakes = 0;
            while rotates.load(Ordering::Relaxed) {
                presented().with_context(|| format!("handshake {handshakes}"))?;
                handshakes += 1;
            }
            Ok(handshakes)
        });
        let rotated = (1..=ROTATIONS).try_for_each(|i| {
            let data = data_of(secret("rotated", &leaves[i % 2]))["data"].take();
            api.patch(&format!("{secrets}/rotated"), &json!({"data": data})).map(drop)
        });
        rotates.store(false, Ordering::Relaxed);
        rotated.and(joined(client))
    })?;
    ensure!(handshakes >= ROTATIONS / 10, "only {handshakes} handshakes");
    // The last certificate is the first one again; then comes the other one.
    wait_until("the last certificate is served", PATIENCE, || presented().is_ok_and(|it| it == first))?;
    let data = data_of(secret("rotated", &leaves[1]))["data"].take();
    api.patch(&format!("{secrets}/rotated"), &json!({"data": data}))?;
    wait_until("another certificate is served", PATIENCE, || presented().is_ok_and(|it| it != first)).map(drop)
}

/// The mock does not turn `stringData` into `data`.
fn data_of(mut secret: Value) -> Value {
    let text = secret["stringData"].take();
    let encode = |(name, text): (&String, &Value)| {
        let text = text.as_str().unwrap_or_default();
        (name.clone(), json!(base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text)))
    };
    secret["data"] = text.as_object().into_iter().flatten().map(encode).collect();
    secret.as_object_mut().and_then(|members| members.remove("stringData"));
    secret
}

/// Installs Gateway API, and a GatewayClass of this name and controller.
fn with_class(site: &Site, name: &str, controller: &str) -> Result<Api> {
    site.define(Definitions::GatewayStandard)?;
    let api = site.api()?;
    let class = json!({"metadata": {"name": name}, "spec": {"controllerName": controller}});
    api.create(&format!("{GATEWAY_API}/v1/gatewayclasses"), &of("v1", "GatewayClass", class))?;
    Ok(api)
}

/// An object of Gateway API.
fn of(version: &str, kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = json!(format!("gateway.networking.k8s.io/{version}"));
    object["kind"] = json!(kind);
    object
}

fn a_grant_opens_and_closes(site: &Site) -> Result<()> {
    let api = with_class(site, "granted", "sluice.dev/gateway-controller")?;
    with_namespace(site, "other")?;
    let ca = Ca::new()?;
    let name = "granted.gw.test";
    api.create("/api/v1/namespaces/other/secrets", &data_of(secret("granted", &ca.leaf(name)?)))?;
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
    let trust = std::sync::Arc::new(trusting(ca.pem().as_bytes())?);
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
    with_class(site, "ours", "sluice.dev/gateway-controller")?;
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
