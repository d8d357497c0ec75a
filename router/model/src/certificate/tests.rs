//! Certificates made for the test, and what is wrong with them.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::*;

struct Ca {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn ca(name: &str) -> Ca {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    Ca { pem, issuer: Issuer::new(params, key) }
}

/// Certificate and key for a host, signed by the CA.
fn leaf(ca: &Ca, configure: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let mut params = CertificateParams::new(vec!["www.example.test".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "leaf");
    configure(&mut params);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, &ca.issuer).unwrap().pem(), key.serialize_pem())
}

fn refusal(certificate: &str, key: Option<&str>, ca: Option<&str>) -> MaterialError {
    MaterialCache::new().pair(certificate, key, ca).unwrap_err()
}

#[test]
fn a_pair_is_loaded_with_its_chain_and_only_once() {
    let ca = ca("a CA");
    let (certificate, key) = leaf(&ca, |_| {});
    let mut cache = MaterialCache::new();
    let pair = cache.pair(&certificate, Some(&key), Some(&ca.pem)).unwrap();
    assert_eq!(pair.cert.len(), 2);
    let again = cache.pair(&certificate, Some(&key), Some(&ca.pem)).unwrap();
    assert!(Arc::ptr_eq(&pair, &again));
    let together = cache.pair(&format!("{certificate}{key}"), None, None).unwrap();
    assert_eq!(together.cert.len(), 1);
}

#[test]
fn dates_and_names_are_not_looked_at() {
    let ca = ca("a CA");
    let (expired, key) = leaf(&ca, |params| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    MaterialCache::new().pair(&expired, Some(&key), Some(&ca.pem)).unwrap();
    let (future, key) = leaf(&ca, |params| {
        params.not_before = rcgen::date_time_ymd(2090, 1, 1);
        params.not_after = rcgen::date_time_ymd(2091, 1, 1);
    });
    MaterialCache::new().pair(&future, Some(&key), Some(&ca.pem)).unwrap();
}

#[test]
fn text_around_the_blocks_and_curve_parameters_are_dropped() {
    let ca = ca("a CA");
    let (certificate, key) = leaf(&ca, |_| {});
    let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    let certificate = format!("subject=/CN=leaf\n  \n{certificate}\n\n");
    MaterialCache::new().pair(&certificate, Some(&format!("{parameters}{key}")), None).unwrap();
}

#[test]
fn what_is_wrong_is_named_and_never_quoted() {
    let (one, other) = (ca("one CA"), ca("another CA"));
    let (certificate, key) = leaf(&one, |_| {});
    let (_, other_key) = leaf(&one, |_| {});
    let cases = [
        (refusal("nonsense", Some(&key), None), PemText::Certificate, "holds no certificate"),
        (refusal(&certificate, Some("nonsense"), None), PemText::Key, "holds no private key"),
        (refusal(&certificate, None, None), PemText::Key, "holds no private key"),
        (refusal(&certificate, Some(&other_key), None), PemText::Key, "does not belong"),
        (refusal(&certificate, Some(&key), Some(&other.pem)), PemText::CaCertificate, "did not sign"),
        (refusal(&certificate, Some(&key), Some("nonsense")), PemText::CaCertificate, "holds no certificate"),
        (refusal(&certificate[..certificate.len() / 2], Some(&key), None), PemText::Certificate, ""),
        (
            refusal(&certificate.replace("CERTIFICATE", "CERTIFICATE REQUEST"), Some(&key), None),
            PemText::Certificate,
            "PEM block",
        ),
    ];
    for (error, part, text) in cases {
        assert_eq!(error.part, part, "{error}");
        assert!(error.message.contains(text), "{error} does not say {text:?}");
        let secret = key.lines().nth(1).unwrap();
        assert!(!format!("{error:?}").contains(secret));
    }
}

#[test]
fn roots_are_loaded_once_and_refused_when_there_are_none() {
    let ca = ca("a CA");
    let mut cache = MaterialCache::new();
    let roots = cache.roots(&ca.pem).unwrap();
    assert_eq!(roots.len(), 1);
    assert!(Arc::ptr_eq(&roots, &cache.roots(&ca.pem).unwrap()));
    assert_eq!(cache.roots("").unwrap_err().part, PemText::CaCertificate);
}

#[test]
fn unreferenced_certificates_are_dropped() {
    let mut cache = MaterialCache::new();
    for i in 0..100 {
        let ca = ca(&format!("CA {i}"));
        cache.roots(&ca.pem).unwrap();
    }
    assert!(cache.roots.len() < 100, "{} entries", cache.roots.len());
}

#[test]
fn certificates_are_equal_by_their_chains_and_trust_by_its_anchors() {
    let (one, other) = (ca("one"), ca("other"));
    let load = |(certificate, key): &(String, String)| {
        MaterialCache::new().pair(certificate, Some(key), Some(&one.pem)).unwrap()
    };
    let [first, second] = [leaf(&one, |_| {}), leaf(&one, |_| {})];
    let pair = load(&first);
    assert!(pair == load(&first) && pair == pair.clone());
    assert_ne!(pair, load(&second));
    assert_ne!(pair, MaterialCache::new().pair(&first.0, Some(&first.1), None).unwrap(), "without the CA");
    assert_eq!(format!("{pair:?}"), "Certificate(..)");

    let trust = |pem: &str| MaterialCache::new().roots(pem).unwrap();
    let both = trust(&format!("{}{}", one.pem, other.pem));
    assert_eq!(trust(&one.pem), trust(&one.pem));
    assert!(trust(&one.pem) != trust(&other.pem) && both != trust(&one.pem) && both == both.clone());
}
