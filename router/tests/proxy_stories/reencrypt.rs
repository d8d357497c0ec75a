//! Re-encrypt: requirements on the backend's certificate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::io::AsyncReadExt;

use crate::pki::Ca;
use crate::tables::{Rig, Route, table, under};
use crate::{backends, client, log, pki};

#[tokio::test]
async fn the_destination_ca_decides_and_the_name_does_not() {
    let (right, wrong) = (Ca::new("right"), Ca::new("wrong"));
    let backend = backends::https("secure", pki::server_config(right.leaf(&["whatever.internal"]))).await;
    let rig = Rig::serve(&[
        Route::new("good.re.test", "").reencrypt(Some(right.roots())).service("cart", &[backend]),
        Route::new("bad.re.test", "").reencrypt(Some(wrong.roots())).service("cart", &[backend]),
    ])
    .await;
    for _ in 0..3 {
        let good = client::get_tls(rig.https, Some("good.re.test"), "good.re.test", "/x").await;
        assert_eq!(good.status, 200);
        assert!(good.body.starts_with("secure GET /x\nsni: cart.shop.svc\n"), "{}", good.body);
    }
    let bad = client::get_tls(rig.https, Some("bad.re.test"), "bad.re.test", "/x").await;
    assert_eq!(bad.status, 502);
    assert_eq!(log::line("host", "bad.re.test").await["flags"], "UV");
}

#[tokio::test]
async fn the_service_ca_requires_the_services_name() {
    let service_ca = Ca::new("service CA");
    let good = backends::https("good", pki::server_config(service_ca.leaf(&["cart.shop.svc"]))).await;
    let other = backends::https("other", pki::server_config(service_ca.leaf(&["other.shop.svc"]))).await;
    let routes = [
        Route::new("good.svc.test", "").reencrypt(None).service("cart", &[good]),
        Route::new("other.svc.test", "").reencrypt(None).service("cart", &[other]),
    ];
    let config = ProxyConfig { service_ca: Some(service_ca.roots()), ..ProxyConfig::default() };
    let rig = Rig::start(config, table(&routes, None)).await;
    assert_eq!(client::get_tls(rig.https, Some("good.svc.test"), "good.svc.test", "/").await.status, 200);
    assert_eq!(client::get_tls(rig.https, Some("other.svc.test"), "other.svc.test", "/").await.status, 502);
}

#[tokio::test]
async fn without_any_ca_nothing_is_sent() {
    let ca = Ca::new("unknown to the router");
    let backend = backends::https("secure", pki::server_config(ca.leaf(&["cart.shop.svc"]))).await;
    let rig = Rig::serve(&[Route::new("noca.test", "").reencrypt(None).service("cart", &[backend])]).await;
    assert_eq!(client::get_tls(rig.https, Some("noca.test"), "noca.test", "/").await.status, 503);
    assert_eq!(log::line("host", "noca.test").await["flags"], "NCA");
}

#[tokio::test]
async fn an_expired_certificate_is_refused_whatever_its_name() {
    let ca = Ca::new("expired leaf");
    let expired = ca.expired_leaf(&["cart.shop.svc"]);
    let backend = backends::https("secure", pki::server_config(Arc::clone(&expired))).await;
    let route = Route::new("expired.test", "").reencrypt(Some(ca.roots())).service("cart", &[backend]);
    let rig = Rig::serve(&[route]).await;
    assert_eq!(client::get_tls(rig.https, Some("expired.test"), "expired.test", "/").await.status, 502);
}

#[tokio::test]
async fn an_endpoint_may_be_its_own_ca_while_it_is_valid() {
    let (listed, roots) = pki::self_signed(&["pod.internal"], false);
    let (other, _) = pki::self_signed(&["pod.internal"], false);
    let (expired, expired_roots) = pki::self_signed(&["pod.internal"], true);
    let good = backends::https("listed", pki::server_config(listed)).await;
    let bad = backends::https("other", pki::server_config(other)).await;
    let old = backends::https("expired", pki::server_config(expired)).await;
    let rig = Rig::serve(&[
        Route::new("listed.self.test", "").reencrypt(Some(Arc::clone(&roots))).service("cart", &[good]),
        Route::new("other.self.test", "").reencrypt(Some(roots)).service("cart", &[bad]),
        Route::new("expired.self.test", "").reencrypt(Some(expired_roots)).service("cart", &[old]),
    ])
    .await;
    for (host, status) in [("listed.self.test", 200), ("other.self.test", 502), ("expired.self.test", 502)] {
        assert_eq!(client::get_tls(rig.https, Some(host), host, "/").await.status, status, "{host}");
    }
}

#[tokio::test]
async fn an_endpoint_that_stalls_in_tls_is_skipped_though_it_accepts() {
    let ca = Ca::new("CA of one that hangs");
    let hellos = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&hellos);
    let hanging = backends::serve(move |mut stream| {
        let count = Arc::clone(&count);
        async move {
            // Health checks send nothing.
            if stream.read(&mut [0; 1]).await.is_ok_and(|read| read == 1) {
                count.fetch_add(1, Ordering::SeqCst);
                std::future::pending().await
            }
        }
    })
    .await;
    let good = backends::https("good", pki::server_config(ca.leaf(&["cart.shop.svc"]))).await;
    let (connect, health_check) = (Duration::from_millis(300), Duration::from_millis(10));
    let timeouts = Timeouts { connect, health_check, ..Timeouts::default() };
    let route = Route::new("hangs.re.test", "").reencrypt(Some(ca.roots())).service("cart", &[hanging, good]);
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    let rig = Rig::start(ProxyConfig::default(), under(policy, table(&[route], None))).await;
    for _ in 0..60 {
        let answer = client::get_tls(rig.https, Some("hangs.re.test"), "hangs.re.test", "/").await;
        assert_eq!(answer.status, 200);
    }
    // Three until the ejection, and one at the end of each ejection; half of the requests would be 30.
    let hellos = hellos.load(Ordering::SeqCst);
    assert!((3..=8).contains(&hellos), "{hellos}");
}
