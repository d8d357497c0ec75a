//! `clientTLS`: accepted client certificates, and the fields that endpoints receive about them.

use std::sync::Arc;

use rcgen::DnType;
use router_proxy::ProxyConfig;
use router_table::policy::{ClientAuth, RouterPolicy};
use router_table::table::InsecurePolicy;
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, ClientConfig, RootCertStore};

use crate::pki::{self, Ca};
use crate::tables::{Rig, Route, eventually, table, under};
use crate::{backends, client, log};

fn asking(required: bool, roots: Arc<RootCertStore>, subjects: &[&str]) -> RouterPolicy {
    let subjects = subjects.iter().map(|pattern| regex::Regex::new(pattern).unwrap()).collect();
    RouterPolicy { client_tls: Some(Arc::new(ClientAuth { required, roots, subjects })), ..RouterPolicy::default() }
}

async fn routes(host: &str) -> Vec<Route> {
    let key = pki::ca().leaf(&[host]);
    let backend = backends::http("app").await;
    vec![Route::new(host, "").edge(Some(&key)).insecure(InsecurePolicy::Allow).to(backend)]
}

async fn rig(policy: RouterPolicy, host: &str) -> Rig {
    Rig::start(ProxyConfig::default(), under(policy, table(&routes(host).await, None))).await
}

fn without_certificate() -> Arc<ClientConfig> {
    Arc::new(client::config(&["http/1.1"]))
}

fn with(identity: &Arc<CertifiedKey>) -> Arc<ClientConfig> {
    Arc::new(client::showing(client::config(&["http/1.1"]), identity))
}

fn ada(ca: &Ca) -> Arc<CertifiedKey> {
    ca.client(&[(DnType::CountryName, "GB"), (DnType::OrganizationName, "Engines"), (DnType::CommonName, "ada")])
}

async fn refusal(rig: &Rig, config: &Arc<ClientConfig>, host: &str) -> AlertDescription {
    client::alert(&client::try_get(rig.https, config, host).await.err().expect("a refusal"))
}

#[tokio::test]
async fn required_means_one_that_the_ca_has_signed_and_that_is_valid() {
    let (ca, other) = (Ca::new("clients"), Ca::new("others"));
    let rig = rig(asking(true, ca.roots(), &[]), "req.cc.test").await;
    let served = client::try_get(rig.https, &with(&ada(&ca)), "req.cc.test").await.unwrap();
    assert_eq!(served.answer.status, 200);
    assert_eq!(refusal(&rig, &without_certificate(), "req.cc.test").await, AlertDescription::CertificateRequired);
    assert_eq!(refusal(&rig, &with(&ada(&other)), "req.cc.test").await, AlertDescription::UnknownCA);
    let expired = with(&ca.expired_leaf(&["client.test"]));
    assert_eq!(refusal(&rig, &expired, "req.cc.test").await, AlertDescription::CertificateExpired);
    assert_eq!(log::line("host", "req.cc.test").await["datapath"], "proxy");
}

#[tokio::test]
async fn optional_means_none_or_a_good_one() {
    let (ca, other) = (Ca::new("clients"), Ca::new("others"));
    let rig = rig(asking(false, ca.roots(), &[]), "opt.cc.test").await;
    let without = client::try_get(rig.https, &without_certificate(), "opt.cc.test").await.unwrap().answer;
    assert_eq!(without.status, 200);
    assert!(!without.body.contains("x-ssl"), "{}", without.body);
    let shown = client::try_get(rig.https, &with(&ada(&ca)), "opt.cc.test").await.unwrap().answer;
    assert!(shown.body.contains("\nx-ssl-client-cn: ada\n"), "{}", shown.body);
    assert_eq!(refusal(&rig, &with(&ada(&other)), "opt.cc.test").await, AlertDescription::UnknownCA);
}

#[tokio::test]
async fn endpoints_get_the_certificate_fields_and_clients_cannot_forge_them() {
    let ca = Ca::new("clients");
    let rig = rig(asking(false, ca.roots(), &[]), "told.cc.test").await;
    let forged = "X-SSL: 1\r\nX-SSL-Client-CN: root\r\nX_SSL_Client_DN: /CN=root\r\nX-SSL-Issuer: me\r\n";
    let request = format!("GET / HTTP/1.1\r\nHost: told.cc.test\r\nConnection: close\r\n{forged}\r\n");
    let name = rustls_pki_types::ServerName::try_from("told.cc.test").unwrap();
    let stream = tokio::net::TcpStream::connect(rig.https).await.unwrap();
    let stream = tokio_rustls::TlsConnector::from(with(&ada(&ca))).connect(name, stream).await.unwrap();
    let told = client::exchange(stream, &request).await.body;
    for line in
        ["x-ssl: 1", "x-ssl-client-verify: 0", "x-ssl-client-dn: /C=GB/O=Engines/CN=ada", "x-ssl-client-cn: ada"]
    {
        assert_eq!(told.lines().filter(|told| *told == line).count(), 1, "{line} in {told}");
    }
    assert_eq!(told.lines().filter(|line| line.starts_with("x-ssl")).count(), 11, "{told}");
    assert!(!told.contains("root") && !told.contains("x_ssl"), "{told}");
    // In clear text there is no certificate, and clients cannot claim one.
    let clear = client::request(rig.http, &request).await;
    assert_eq!(clear.status, 200);
    assert!(!clear.body.contains("x-ssl") && !clear.body.contains("x_ssl"), "{}", clear.body);
}

#[tokio::test]
async fn subjects_that_no_pattern_matches_are_forbidden() {
    let ca = Ca::new("clients");
    let policy = asking(false, ca.roots(), &["^/C=GB/O=Engines/", "/CN=grace$"]);
    let rig = rig(policy, "subj.cc.test").await;
    let grace = ca.client(&[(DnType::CommonName, "grace")]);
    let mallory = ca.client(&[(DnType::OrganizationName, "Engines"), (DnType::CommonName, "gracee")]);
    let cases = [
        ("ada", with(&ada(&ca)), 200),
        ("grace", with(&grace), 200),
        ("mallory", with(&mallory), 403),
        ("nobody", without_certificate(), 403),
    ];
    for (who, config, status) in cases {
        let answer = client::try_get(rig.https, &config, "subj.cc.test").await.unwrap().answer;
        assert_eq!(answer.status, status, "{who}");
    }
    let denied = log::line_where("a 403", |line| line["host"] == "subj.cc.test" && line["status"] == 403).await;
    assert_eq!(denied["flags"], "CC");
}

#[tokio::test]
async fn a_certificate_may_be_its_own_ca() {
    let (listed, roots) = pki::self_signed(&["device.test"], false);
    let (unlisted, _) = pki::self_signed(&["device.test"], false);
    let rig = rig(asking(true, roots, &[]), "self.cc.test").await;
    assert_eq!(client::try_get(rig.https, &with(&listed), "self.cc.test").await.unwrap().answer.status, 200);
    // It has the name of the trusted one, and another key.
    assert_eq!(refusal(&rig, &with(&unlisted), "self.cc.test").await, AlertDescription::DecryptError);
    let (expired, roots) = pki::self_signed(&["device.test"], true);
    let table = under(asking(true, roots, &[]), table(&routes("expired.cc.test").await, None));
    let rig = Rig::start(ProxyConfig::default(), table).await;
    assert_eq!(refusal(&rig, &with(&expired), "expired.cc.test").await, AlertDescription::CertificateExpired);
}

#[tokio::test]
async fn without_a_ca_every_client_is_rejected() {
    let rig = rig(asking(false, Arc::new(RootCertStore::empty()), &[]), "noca.cc.test").await;
    assert_eq!(refusal(&rig, &without_certificate(), "noca.cc.test").await, AlertDescription::InternalError);
    assert_eq!(client::get(rig.http, "noca.cc.test", "/").await.status, 200, "clear text is served");
}

#[tokio::test]
async fn a_connection_made_before_the_policy_is_not_served_under_it() {
    let ca = Ca::new("clients");
    let routes = routes("turn.cc.test").await;
    let make = |policy| under(policy, table(&routes, None));
    let rig = Rig::start(ProxyConfig::default(), make(RouterPolicy::default())).await;
    let (first, second) = (
        client::tls(rig.https, Some("turn.cc.test"), &["http/1.1"]).await,
        client::tls(rig.https, Some("turn.cc.test"), &["http/1.1"]).await,
    );
    let request = "GET / HTTP/1.1\r\nHost: turn.cc.test\r\nConnection: close\r\n\r\n";
    assert_eq!(client::exchange(first, request).await.status, 200);
    rig.tables.send_replace(make(asking(true, ca.roots(), &[])));
    eventually("the policy", async || {
        client::try_get(rig.https, &without_certificate(), "turn.cc.test").await.is_err()
    })
    .await;
    assert_eq!(client::exchange(second, request).await.status, 421);
    assert_eq!(client::try_get(rig.https, &with(&ada(&ca)), "turn.cc.test").await.unwrap().answer.status, 200);

    // An equal policy in a new object does not affect connections.
    let third = shown(&rig, &ca).await;
    rig.tables.send_replace(make(asking(true, ca.roots(), &[])));
    let more = Route::new("more.cc.test", "");
    let longer = under(asking(true, ca.roots(), &[]), table(&[routes[0].clone(), more], None));
    rig.tables.send_replace(longer);
    eventually("the last table", async || {
        client::get(rig.http, "more.cc.test", "/").await.field("cache-control").is_some()
    })
    .await;
    assert_eq!(client::exchange(third, request).await.status, 200);

    // A stricter one does.
    let fourth = shown(&rig, &ca).await;
    rig.tables.send_replace(make(asking(true, ca.roots(), &["/CN=grace$"])));
    eventually("the pattern", async || {
        client::try_get(rig.https, &with(&ada(&ca)), "turn.cc.test").await.is_ok_and(|got| got.answer.status == 403)
    })
    .await;
    assert_eq!(client::exchange(fourth, request).await.status, 421);
}

async fn shown(rig: &Rig, ca: &Ca) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    let name = rustls_pki_types::ServerName::try_from("turn.cc.test").unwrap();
    let stream = tokio::net::TcpStream::connect(rig.https).await.unwrap();
    tokio_rustls::TlsConnector::from(with(&ada(ca))).connect(name, stream).await.unwrap()
}
