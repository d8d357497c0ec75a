//! Parsed ConfigMaps and their diagnostics.

use serde_json::{Value, json};

use super::*;
use crate::object::Object;
use crate::parse::ParseOutcome;
use crate::testing::{authority, config_map, parsed};

fn read(data: Value) -> (Arc<ConfigMap>, Vec<String>) {
    let parsed = parsed(config_map("openshift-config/it", data));
    let ParseOutcome::Good(Object::ConfigMap(map)) = parsed.outcome else { panic!("{:?}", parsed.outcome) };
    (map, parsed.warnings.iter().map(ToString::to_string).collect())
}

#[test]
fn a_page_is_a_whole_response() {
    let text = "HTTP/1.0 503 Service Unavailable\nPragma: no-cache\nConnection: close\ncontent-length: 3\n\
                Content-Type: text/html\n\n<html>\n\n</html>\n";
    let page = ErrorPage::parse(text).unwrap();
    assert_eq!(page.status, 503);
    let fields: Vec<_> = page.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(fields, [("Pragma", &b"no-cache"[..]), ("Content-Type", &b"text/html"[..])]);
    assert_eq!(page.body, "<html>\n\n</html>\n");
    assert_eq!(ErrorPage::parse(&text.replace('\n', "\r\n")).unwrap().fields, page.fields);
    assert_eq!(ErrorPage::parse("HTTP/1.1 404 Not Found\r\n\r\n").unwrap().body, "");

    let fault = |text: &str| ErrorPage::parse(text).unwrap_err();
    assert!(fault("<html></html>").contains("begin with a line such as HTTP/1.0 503"));
    assert!(fault("").contains("no empty line"));
    assert!(fault("HTTP/1.0 503 X\nA: b\n").contains("write one before the body"));
    assert!(fault("HTTP/1.0 100 Continue\n\n").starts_with("has status 100"));
    assert!(fault("HTTP/1.0 503 X\nA b: c\n\n").starts_with("is not a valid HTTP response"));
    let many: String = (0..70).map(|number| format!("x{number}: y\n")).collect();
    assert!(fault(&format!("HTTP/1.0 503 X\n{many}\n")).starts_with("is not a valid HTTP response"));
}

#[test]
fn what_cannot_be_used_is_warned_of_by_key() {
    let (map, warnings) = read(json!({ "ca-bundle.pem": authority("clients"), "other": "x" }));
    assert_eq!(warnings, Vec::<String>::new());
    let ca = map.client_ca.as_ref().unwrap().as_ref().unwrap();
    assert_eq!((ca.roots.len(), ca.names_revocation_lists), (1, false));
    assert!(map.unavailable.is_none() && map.not_found.is_none());

    let (map, warnings) = read(json!({
        "ca-bundle.pem": "nothing",
        "error-page-503.http": "<html>",
        "error-page-404.http": "HTTP/1.1 404 Not Found\n\nnot here",
    }));
    assert!(map.client_ca.as_ref().unwrap().is_err() && map.unavailable.as_ref().unwrap().is_err());
    assert_eq!(map.not_found.as_ref().unwrap().as_ref().unwrap().body, "not here");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("data[ca-bundle.pem]: holds no certificate"), "{warnings:?}");
    assert!(warnings[1].starts_with("data[error-page-503.http]: is not a valid HTTP response"), "{warnings:?}");
}

#[test]
fn a_ca_that_names_revocation_lists_is_known() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.crl_distribution_points = vec![rcgen::CrlDistributionPoint { uris: vec!["http://crl.test/".to_owned()] }];
    let pem = params.self_signed(&key).unwrap().pem();
    let (map, _) = read(json!({ "ca-bundle.pem": pem }));
    assert!(map.client_ca.as_ref().unwrap().as_ref().unwrap().names_revocation_lists);
}
