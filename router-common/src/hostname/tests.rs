//! Names, authorities and key fields, row by row.

use std::string::String;

use super::*;
use crate::common::properties;

fn name(text: &str) -> Result<(String, HostKind), HostError> {
    normalise(text.as_bytes()).map(|(host, kind)| (String::from(field_text(&host.exact)), kind))
}

fn authority(text: &str) -> Result<(String, Option<u16>), HostError> {
    normalise_authority(text.as_bytes()).map(|(host, _)| (String::from(field_text(&host.exact)), host.port()))
}

#[test]
fn names_come_out_lower_case_and_without_the_trailing_dot() {
    for (text, normal) in [
        ("a.test", "a.test"),
        ("A.TeSt", "a.test"),
        ("a.test.", "a.test"),
        ("localhost", "localhost"),
        ("_dmarc.a.test", "_dmarc.a.test"),
        ("xn--bcher-kva.test", "xn--bcher-kva.test"),
        ("1.a", "1.a"),
        ("0x7f.1a", "0x7f.1a"),
    ] {
        assert_eq!(name(text), Ok((String::from(normal), HostKind::Name)), "{text}");
    }
}

#[test]
fn what_is_no_name_says_why() {
    for (text, error) in [
        ("", HostError::Empty),
        (".", HostError::EmptyLabel),
        (".a", HostError::EmptyLabel),
        ("a..b", HostError::EmptyLabel),
        ("a..", HostError::EmptyLabel),
        ("*.a.test", HostError::BadByte),
        ("a b", HostError::BadByte),
        ("a\0.test", HostError::BadByte),
        ("b\u{fc}cher.test", HostError::BadByte),
        ("a.test/x", HostError::BadByte),
        ("u@a.test", HostError::BadByte),
        ("a.test,b.test", HostError::BadByte),
        ("a.test:443", HostError::BadByte),
        ("a.:1", HostError::BadByte),
        ("[::1]", HostError::BadByte),
    ] {
        assert_eq!(name(text), Err(error), "{text:?}");
        assert!(!error.describe().is_empty());
    }
}

#[test]
fn lengths_are_those_of_rfc_1035() {
    let label = "l".repeat(63);
    assert!(name(&label).is_ok());
    assert_eq!(name(&"l".repeat(64)), Err(HostError::LongLabel));
    let longest = [&label[..], &label, &label, &label[..61]].join(".");
    assert_eq!(longest.len(), MAX_NAME);
    assert_eq!(name(&longest), Ok((longest.clone(), HostKind::Name)));
    assert!(name(&[&longest, "."].concat()).is_ok(), "the trailing dot does not count");
    assert_eq!(name(&[&longest, "l"].concat()), Err(HostError::LongName));
    assert_eq!(name(&[&longest, ".l"].concat()), Err(HostError::LongName));
}

#[test]
fn addresses_are_distinguished_from_names() {
    for text in ["192.0.2.1", "192.0.2.1.", "a.1", "2001:db8::1", "::", "::ffff:192.0.2.1", "2001:DB8:0:0:0:0:0:1"] {
        assert_eq!(name(text).map(|(_, kind)| kind), Ok(HostKind::IpLiteral), "{text}");
    }
    for text in ["[2001:db8::1]", "[2001:db8::1]:443", "192.0.2.1:80", "[::]"] {
        let kind = normalise_authority(text.as_bytes()).map(|(_, kind)| kind);
        assert_eq!(kind, Ok(HostKind::IpLiteral), "{text}");
    }
}

#[test]
fn authorities_may_have_a_port() {
    for (text, normal, port) in [
        ("a.test", "a.test", None),
        ("a.test:", "a.test", None),
        ("a.test:0", "a.test", Some(0)),
        ("a.test:00080", "a.test", Some(80)),
        ("A.test.:65535", "a.test", Some(65535)),
    ] {
        assert_eq!(authority(text), Ok((String::from(normal), port)), "{text}");
    }
    for (text, error) in [
        ("a.test:65536", HostError::BadPort),
        ("a.test:99999", HostError::BadPort),
        ("a.test:4294967376", HostError::BadPort),
        ("a.test:0000000000", HostError::BadPort),
        ("a.test:80:80", HostError::BadPort),
        ("a.test:x", HostError::BadPort),
        ("a.test: 80", HostError::BadPort),
        ("a..:80", HostError::EmptyLabel),
        (":80", HostError::Empty),
        ("", HostError::Empty),
        ("[]", HostError::Empty),
        ("[]:80", HostError::Empty),
        ("[::1", HostError::BadByte),
        ("[::1]x", HostError::BadByte),
        ("[::1%eth0]", HostError::BadByte),
        ("a[::1]", HostError::BadByte),
        ("a.[::1]", HostError::BadByte),
        ("::1", HostError::Empty),
    ] {
        assert_eq!(authority(text), Err(error), "{text}");
    }
}

#[test]
fn key_fields_hold_the_name_and_the_wildcard_that_covers_it() {
    for (text, exact, wildcard) in [
        ("a.b.test", "a.b.test", "*.b.test"),
        ("A.B.Test.", "a.b.test", "*.b.test"),
        ("b.test", "b.test", "*.test"),
        ("localhost", "localhost", ""),
        ("localhost.", "localhost", ""),
    ] {
        let (host, _) = normalise(text.as_bytes()).expect(text);
        assert_eq!(host.exact, crate::maps::field::<NAME_FIELD>(exact), "{text}");
        assert_eq!(host.wildcard, crate::maps::field::<NAME_FIELD>(wildcard), "{text}");
        assert_eq!((host.len(), host.is_empty()), (exact.len(), false));
    }
    assert!(HostBuilder::default().is_empty());
}

#[test]
fn authorities_in_normal_form_are_taken_at_once_up_to_every_limit() {
    let label = |length: usize| "l".repeat(length);
    // Three labels of 63 and one of 61 are 253 bytes.
    let name = |last: usize| [label(63), label(63), label(63), label(last)].join(".");
    for (text, length) in [
        (label(63), 63),
        (label(63) + ".test", 68),
        (String::from("a.") + &label(63), 65),
        (name(61), 253),
        (name(61) + ":443", 253),
        (String::from("a.test"), 6),
        (String::from("a.test:"), 6),
        (String::from("a.test:9999"), 6),
        (String::from("a.test:65535"), 6),
        (String::from("a.test:00080"), 6),
    ] {
        let found = NormalName::of_authority(text.as_bytes()).map(NormalName::as_str);
        assert_eq!(found, text.get(..length), "{text}");
    }
    for text in [
        label(64),
        label(64) + ".test",
        String::from("a.") + &label(64),
        name(62),
        String::new(),
        String::from(":80"),
        String::from(".a"),
        String::from("a..b"),
        String::from("a.test."),
        String::from("10.0.0.1"),
        String::from("A.test"),
        String::from("a.test:65536"),
        String::from("a.test:99999"),
        String::from("a.test:000080"),
        String::from("a.test:8o"),
        String::from("a.test/x"),
        String::from("[::1]"),
    ] {
        assert_eq!(NormalName::of_authority(text.as_bytes()).map(NormalName::as_str), None, "{text}");
    }
}

#[test]
fn every_string_of_four_odd_characters_agrees_with_the_model() {
    const BYTES: &[u8] = b"aZ0-_.:[]*g";
    let n = BYTES.len();
    for i in 0..n * n * n * n {
        properties::host_name(&[BYTES[i % n], BYTES[i / n % n], BYTES[i / n / n % n], BYTES[i / n / n / n]]);
    }
}
