//! Annotations in, options and faults out.

use super::*;
use crate::model::PathMatch;

const HTTP: fn() -> Traffic = || Traffic::Http { path: PathMatch::any(), tls: None };
const PASSTHROUGH: fn() -> Traffic = || Traffic::Passthrough { redirect: false };

fn read(traffic: &Traffic, annotations: &[(&str, &str)]) -> (TrafficOptions, Vec<AnnotationFault>) {
    let texts = annotations.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    TrafficOptions::read(&texts, traffic)
}

/// The only fault, which must leave nothing but the defaults.
fn fault(traffic: &Traffic, annotation: &str, text: &str) -> String {
    let (options, faults) = read(traffic, &[(annotation, text)]);
    assert_eq!(options, TrafficOptions::default(), "{annotation}: {text}");
    let [only] = faults.as_slice() else { panic!("{annotation}: {text}: {faults:?}") };
    assert_eq!(only.annotation, annotation);
    only.message.clone()
}

#[test]
fn timeouts_are_haproxys() {
    const MINUTE: u64 = 60_000_000;
    let good = [
        ("1us", 1),
        ("999", 999_000),
        ("10", 10_000),
        ("250ms", 250_000),
        ("5s", 5_000_000),
        ("100m", 100 * MINUTE),
        ("7h", 7 * 60 * MINUTE),
        ("24d", 24 * 24 * 60 * MINUTE),
    ];
    for (text, microseconds) in good {
        assert_eq!(timeout(text), Some(Duration::from_micros(microseconds)), "{text}");
    }
    for long in ["25d", "1000h", "2147483648", "9223372036854776us", "9223372036854775807", &"9".repeat(400)] {
        assert_eq!(timeout(long), Some(MAX_TIMEOUT), "{long}");
    }
    assert_eq!(timeout("2147483646ms"), Some(MAX_TIMEOUT - Duration::from_millis(1)));
    for bad in ["", "0", "0s", "05s", "1.5s", "1d12h", "s", "-1s", "+1s", " 1s", "1s ", "1S", "1ns", "1 s", "٣s"] {
        assert_eq!(timeout(bad), None, "{bad:?}");
    }
}

#[test]
fn the_tunnel_timeout_of_passthrough_is_the_first_good_of_two() {
    let found = |traffic: Traffic, annotations: &[(&str, &str)]| read(&traffic, annotations).0.tunnel_timeout;
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(found(PASSTHROUGH(), &[(TIMEOUT, "5s")]), seconds(5));
    assert_eq!(found(PASSTHROUGH(), &[(TIMEOUT, "5s"), (TIMEOUT_TUNNEL, "9s")]), seconds(9));
    assert_eq!(found(PASSTHROUGH(), &[(TIMEOUT, "5s"), (TIMEOUT_TUNNEL, "nine")]), seconds(5));
    // Elsewhere `timeout` is about answers.
    assert_eq!(found(HTTP(), &[(TIMEOUT, "5s")]), None);
    assert_eq!(found(HTTP(), &[(TIMEOUT, "5s"), (TIMEOUT_TUNNEL, "9s")]), seconds(9));
    let message = "Invalid value: \"1.5s\", ignored; write a whole number and us, ms, s, m, h or d, such as 30s";
    assert_eq!(fault(&HTTP(), TIMEOUT, "1.5s"), message);
    assert_eq!(fault(&PASSTHROUGH(), TIMEOUT_TUNNEL, "1.5s"), message);
}

#[test]
fn the_proxy_header_is_for_passthrough_alone() {
    let (options, faults) = read(&PASSTHROUGH(), &[(PROXY_PROTOCOL, "v2")]);
    assert!(options.proxy_protocol && faults.is_empty());
    for bad in ["v1", "", "V2", "true"] {
        let message = format!("Unsupported value: {bad:?}, ignored; write v2, or remove it");
        assert_eq!(fault(&PASSTHROUGH(), PROXY_PROTOCOL, bad), message);
    }
    assert!(
        fault(&HTTP(), PROXY_PROTOCOL, "v2").starts_with("is only for passthrough routes, ignored; remove it, or ")
    );
}

#[test]
fn forwarding_headers_have_four_policies() {
    let policies = [
        ("append", ForwardedHeaders::Append),
        ("replace", ForwardedHeaders::Replace),
        ("if-none", ForwardedHeaders::IfNone),
        ("never", ForwardedHeaders::Never),
    ];
    for (text, policy) in policies {
        assert_eq!(read(&HTTP(), &[(SET_FORWARDED_HEADERS, text)]).0.forwarded, Some(policy));
    }
    let message = "Unsupported value: \"Never\", ignored; write append, replace, if-none or never";
    assert_eq!(fault(&HTTP(), SET_FORWARDED_HEADERS, "Never"), message);
    assert!(fault(&PASSTHROUGH(), SET_FORWARDED_HEADERS, "never").contains("requests are not read"));
}

#[test]
fn work_on_requests_is_noticed_by_name() {
    for name in REQUEST_WORK {
        assert!(read(&HTTP(), &[(name, "anything")]).0.request_work, "{name}");
    }
    for name in [
        "haproxy.router.openshift.io/balance",
        "haproxy.router.openshift.io/disable_cookies",
        "haproxy.router.openshift.io/ip_allowlist",
        "example.test/rewrite-target",
    ] {
        assert_eq!(read(&HTTP(), &[(name, "true")]).0, TrafficOptions::default(), "{name}");
    }
}
