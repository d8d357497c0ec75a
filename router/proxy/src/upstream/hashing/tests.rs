//! Parts of a key, and the stability of its hash.

use http::HeaderName;

use super::*;

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers
}

fn header(name: &str, terminal: bool) -> HashOf {
    HashOf { part: HashedPart::Header(name.into()), terminal }
}

fn query(name: &str) -> HashOf {
    HashOf { part: HashedPart::Query(name.into()), terminal: false }
}

fn key(parts: &[HashOf], fields: &[(&'static str, &'static str)], uri: &str) -> Option<HashKey> {
    let (headers, uri, client) = (headers(fields), uri.parse().unwrap(), "192.0.2.7".parse().unwrap());
    HashInput { headers: &headers, uri: &uri, client }.key(parts, None).0
}

#[test]
fn a_key_is_made_of_what_is_there() {
    let both = [header("x-a", false), header("x-b", false)];
    let of_a = key(&both, &[("x-a", "1")], "/").unwrap();
    assert_eq!(key(&both[..1], &[("x-a", "1"), ("x-b", "2")], "/"), Some(of_a), "what is not named does not count");
    assert_eq!(key(&both, &[("x-b", "1")], "/"), Some(of_a), "only one of them is there");
    assert_ne!(key(&both, &[("x-a", "1"), ("x-b", "2")], "/"), Some(of_a));
    assert_ne!(key(&both, &[("x-a", "1"), ("x-b", "2")], "/"), key(&both, &[("x-a", "2"), ("x-b", "1")], "/"));
    assert_eq!(key(&both, &[], "/"), None);
    let ends = [header("x-a", true), header("x-b", false)];
    assert_eq!(key(&ends, &[("x-a", "1"), ("x-b", "2")], "/"), Some(of_a));
    assert_eq!(key(&ends, &[("x-b", "1")], "/"), Some(of_a));
}

#[test]
fn values_of_one_field_count_in_any_order() {
    let of = [header("x-a", false)];
    let both = key(&of, &[("x-a", "1"), ("x-a", "2")], "/");
    assert_eq!(both, key(&of, &[("x-a", "2"), ("x-a", "1")], "/"));
    assert_ne!(both, key(&of, &[("x-a", "1")], "/"));
    assert_ne!(both, key(&of, &[("x-a", "12")], "/"));
}

#[test]
fn the_first_parameter_of_a_name_counts() {
    let of = [query("user")];
    let one = key(&of, &[], "/?user=1").unwrap();
    for uri in ["/?x=2&user=1", "/other?User=1&x", "/?user=1&user=2"] {
        assert_eq!(key(&of, &[], uri), Some(one), "{uri}");
    }
    for uri in ["/?user=2", "/?user", "/?user=1%20"] {
        assert!(key(&of, &[], uri).is_some_and(|other| other != one), "{uri}");
    }
    for uri in ["/", "/?", "/?users=1", "/user=1"] {
        assert_eq!(key(&of, &[], uri), None, "{uri}");
    }
}

/// All nodes and all versions must compute the same values: a change moves all clients to other endpoints.
#[test]
fn the_numbers_are_what_they_were() {
    let key = HashKey::of_bytes(b"0123456789abcdef0123456789abcdef");
    let tag = Tag::of_text("10.0.0.1:8080");
    assert_eq!(format!("{:016x} {tag}", key.0), "b0df0e10f2735dda 120e9814c44c7e73a6517a70ab3f08fe");
    assert_eq!(HashKey::of_client("::ffff:192.0.2.7".parse().unwrap()), HashKey(0xc000_0207));
    assert!((score(key, tag, 3) + 0.163_647_031_051_826).abs() < 1e-12);
}
