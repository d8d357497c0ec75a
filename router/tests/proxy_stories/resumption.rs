//! Session resumption: which sessions resume, and under which conditions.

use std::sync::Arc;

use rcgen::DnType;
use router_proxy::ProxyConfig;
use router_table::policy::{ClientAuth, RouterPolicy};
use rustls::client::{Resumption, Tls12Resumption};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, HandshakeKind, SupportedProtocolVersion};

use crate::pki::{self, Ca};
use crate::tables::{Rig, Route, eventually, of_routers, router, table, under};
use crate::{backends, client};

const HOST: &str = "resume.test";

async fn route() -> Route {
    Route::new(HOST, "").edge(Some(&pki::ca().leaf(&[HOST]))).to(backends::http("app").await)
}

fn speaking(version: &'static SupportedProtocolVersion, resumption: Tls12Resumption) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(pki::provider())
        .with_protocol_versions(&[version])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(client::any_certificate())
        .with_no_client_auth();
    config.resumption = Resumption::in_memory_sessions(16).tls12_resumption(resumption);
    config
}

async fn kind(rig: &Rig, config: &Arc<ClientConfig>) -> HandshakeKind {
    let served = client::try_get(rig.https, config, HOST).await.unwrap();
    assert_eq!(served.answer.status, 200);
    served.kind.unwrap()
}

#[tokio::test]
async fn tickets_and_session_ids_are_taken() {
    let rig = Rig::serve(&[route().await]).await;
    let clients = [
        ("TLS 1.3", speaking(&TLS13, Tls12Resumption::Disabled)),
        ("TLS 1.2 with tickets", speaking(&TLS12, Tls12Resumption::SessionIdOrTickets)),
        ("TLS 1.2 with session ids", speaking(&TLS12, Tls12Resumption::SessionIdOnly)),
    ];
    for (name, config) in clients {
        let config = Arc::new(config);
        assert_eq!(kind(&rig, &config).await, HandshakeKind::Full, "{name}");
        for _ in 0..3 {
            assert_eq!(kind(&rig, &config).await, HandshakeKind::Resumed, "{name}");
        }
    }
}

#[tokio::test]
async fn there_is_no_early_data() {
    let rig = Rig::serve(&[route().await]).await;
    let mut config = speaking(&TLS13, Tls12Resumption::Disabled);
    config.enable_early_data = true;
    let config = Arc::new(config);
    assert_eq!(kind(&rig, &config).await, HandshakeKind::Full);
    let name = rustls_pki_types::ServerName::try_from(HOST).unwrap();
    let mut session = rustls::ClientConnection::new(config, name).unwrap();
    assert!(session.early_data().is_none(), "the ticket allows none");
}

#[tokio::test]
async fn a_ticket_is_good_for_its_router_alone() {
    let route = route().await;
    let one = |name: &str| router(name, std::slice::from_ref(&route), None, (0, 0));
    let both = of_routers(vec![one("first"), one("second")]);
    let rig = Rig::start(ProxyConfig::default(), both).await;
    let states = Arc::clone(&rig.proxy.listeners().borrow());
    let ports: Vec<_> = states.iter().filter(|state| state.protocol == router_listener::Protocol::Https).collect();
    let [first, second] = ports.as_slice() else { panic!("two listeners: {states:?}") };
    let config = Arc::new(speaking(&TLS13, Tls12Resumption::Disabled));
    let to = async |address| client::try_get(address, &config, HOST).await.unwrap().kind.unwrap();
    assert_eq!(to(first.address).await, HandshakeKind::Full);
    assert_eq!(to(first.address).await, HandshakeKind::Resumed);
    assert_eq!(to(second.address).await, HandshakeKind::Full);
    assert_eq!(to(second.address).await, HandshakeKind::Resumed);
}

#[tokio::test]
async fn a_session_keeps_the_certificate_and_ends_with_the_policy() {
    let ca = Ca::new("clients");
    let asking = |patterns: &[&str]| {
        let subjects = patterns.iter().map(|pattern| regex::Regex::new(pattern).unwrap()).collect();
        let auth = ClientAuth { required: true, roots: ca.roots(), subjects };
        RouterPolicy { client_tls: Some(Arc::new(auth)), ..RouterPolicy::default() }
    };
    let routes = [route().await];
    for config in [speaking(&TLS13, Tls12Resumption::Disabled), speaking(&TLS12, Tls12Resumption::SessionIdOnly)] {
        let rig = Rig::start(ProxyConfig::default(), under(asking(&[]), table(&routes, None))).await;
        let config = Arc::new(client::showing(config, &ca.client(&[(DnType::CommonName, "ada")])));
        assert_eq!(kind(&rig, &config).await, HandshakeKind::Full);
        let again = client::try_get(rig.https, &config, HOST).await.unwrap();
        assert_eq!(again.kind, Some(HandshakeKind::Resumed));
        assert!(again.answer.body.contains("\nx-ssl-client-dn: /CN=ada\n"), "{}", again.answer.body);

        rig.tables.send_replace(under(asking(&["/CN=grace$"]), table(&routes, None)));
        eventually("the policy", async || {
            let served = client::try_get(rig.https, &config, HOST).await.unwrap();
            // Until the policy is active, the session resumes and is served, or is rejected as one of the old policy.
            match served.answer.status {
                200 | 421 => false,
                status => {
                    assert_eq!((status, served.kind), (403, Some(HandshakeKind::Full)));
                    true
                }
            }
        })
        .await;
        let again = client::try_get(rig.https, &config, HOST).await.unwrap();
        assert_eq!((again.answer.status, again.kind), (403, Some(HandshakeKind::Resumed)));
    }
}
