//! TLS profiles: offered versions and suites, and those that rustls does not support.

use rustls::ProtocolVersion;

use super::*;
use crate::policy::tls_profile::ProfileKind;

fn custom(min_version: TlsVersion, ciphers: &[&str]) -> TlsProfile {
    let ciphers = ciphers.iter().map(|name| (*name).into()).collect();
    TlsProfile { kind: ProfileKind::Custom, min_version, ciphers }
}

fn names(offer: &TlsOffer) -> Vec<String> {
    offer.suites.iter().map(|suite| format!("{:?}", suite.suite())).collect()
}

fn versions(offer: &TlsOffer) -> Vec<ProtocolVersion> {
    offer.versions.iter().map(|version| version.version).collect()
}

const NEW: [&str; 3] = ["TLS13_AES_128_GCM_SHA256", "TLS13_AES_256_GCM_SHA384", "TLS13_CHACHA20_POLY1305_SHA256"];
const BOTH: [ProtocolVersion; 2] = [ProtocolVersion::TLSv1_3, ProtocolVersion::TLSv1_2];

#[test]
fn the_default_profile_keeps_its_order_and_lacks_dhe_alone() {
    let offer = TlsOffer::of(&TlsProfile::default()).unwrap();
    assert_eq!(names(&offer)[..3], NEW);
    assert_eq!(names(&offer)[3], "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
    assert_eq!(offer.suites.len(), 9);
    assert_eq!(versions(&offer), BOTH);
    assert_eq!(*offer.missing, ["DHE-RSA-AES128-GCM-SHA256".into(), "DHE-RSA-AES256-GCM-SHA384".into()]);
}

#[test]
fn the_order_of_a_profile_is_the_preference() {
    let ciphers = ["ECDHE-RSA-CHACHA20-POLY1305", "TLS_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-AES256-GCM-SHA384"];
    let offer = TlsOffer::of(&custom(TlsVersion::Tls12, &ciphers)).unwrap();
    let expected = [
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS13_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    ];
    assert_eq!(names(&offer), expected);
    assert!(offer.missing.is_empty());
}

#[test]
fn suites_of_tls_1_3_are_all_there_when_none_is_named() {
    let offer = TlsOffer::of(&custom(TlsVersion::Tls11, &["ECDHE-RSA-AES128-GCM-SHA256", "AES128-SHA"])).unwrap();
    assert_eq!(names(&offer)[..3], NEW);
    assert_eq!(names(&offer)[3..], ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]);
    assert_eq!(versions(&offer), BOTH);
    assert_eq!(*offer.missing, ["AES128-SHA".into(), "VersionTLS11".into()]);
}

#[test]
fn what_is_named_for_tls_1_3_limits_it() {
    let offer = TlsOffer::of(&custom(TlsVersion::Tls12, &["TLS_AES_256_GCM_SHA384"])).unwrap();
    assert_eq!(names(&offer), ["TLS13_AES_256_GCM_SHA384"]);
    assert_eq!(versions(&offer), [ProtocolVersion::TLSv1_3]);
    let modern = ["TLS_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"];
    let offer = TlsOffer::of(&custom(TlsVersion::Tls13, &modern)).unwrap();
    assert_eq!((names(&offer), versions(&offer)), (vec![NEW[0].to_owned()], vec![ProtocolVersion::TLSv1_3]));
}

#[test]
fn a_profile_of_which_nothing_can_be_had_is_refused() {
    let ciphers = ["DHE-RSA-AES128-GCM-SHA256", "AES256-SHA", "DES-CBC3-SHA"];
    let refused = TlsOffer::of(&custom(TlsVersion::Tls10, &ciphers)).unwrap_err();
    assert!(refused.to_string().contains("TLS_AES_128_GCM_SHA256, "), "{refused}");
}
