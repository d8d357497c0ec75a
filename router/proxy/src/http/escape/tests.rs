//! Targets that hyper can read.

use http::Uri;

use super::*;

#[test]
fn what_the_gate_lets_through_is_a_uri_then() {
    for byte in (b'!'..=b'~').filter(|byte| *byte != b'#') {
        for before in ["/a", "/?a", "/a?b?"] {
            let target = [before.as_bytes(), &[byte]].concat();
            let is_uri = Uri::try_from(&target[..]).is_ok();
            match escaped(&target) {
                None => assert!(is_uri, "{target:?}"),
                Some(escaped) => {
                    assert!(!is_uri, "no more than needed: {target:?}");
                    assert_eq!(escaped, format!("{before}%{byte:02X}").into_bytes());
                    assert!(Uri::try_from(&escaped[..]).is_ok(), "{target:?}");
                }
            }
        }
    }
}

#[test]
fn the_rest_stays_as_it_is() {
    assert_eq!(escaped(b"/a\"?b`&c=%22"), None);
    assert_eq!(escaped(b"/`\"<?`=\">%3C").as_deref(), Some(&b"/%60\"%3C?`=%22%3E%3C"[..]));
}
