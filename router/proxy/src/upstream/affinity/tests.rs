//! The affinity cookie in requests and responses.

use router_model::names::RouteId;
use router_table::policy::{Affinity, RoutePolicy};

use super::*;
use crate::upstream::testing::{address, edge, route};

/// `printf shop/cart | sha256sum | cut -c -32`
const NAME: &str = "5f34a27119d156b24eb42781994c9ac1";
/// `printf 'shop/cart\0127.0.0.1:8080' | sha256sum | cut -c -32`
const VALUE: &str = "84153095416270e8a687a75e1ad2980e";

fn with(affinity: Affinity) -> RoutePolicy {
    RoutePolicy { affinity, ..RoutePolicy::default() }
}

fn named(name: &str) -> Cookie {
    Cookie::of(&route(&[], with(Affinity { cookie: Some(name.into()), ..Affinity::default() }))).unwrap()
}

fn headers(name: http::HeaderName, values: &[&str]) -> HeaderMap {
    values.iter().map(|value| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
}

fn texts(headers: &HeaderMap, name: http::HeaderName) -> Vec<&str> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
}

#[test]
fn name_value_and_attributes_are_those_that_users_know() {
    let plain = route(&[], RoutePolicy::default());
    let tag = Tag::of(&plain.id, address(8080));
    let text = |route: &ResolvedRoute| Cookie::of(route).unwrap().value(tag).unwrap().to_str().unwrap().to_owned();
    assert_eq!(text(&plain), format!("{NAME}={VALUE}; path=/; HttpOnly"));

    let strict = with(Affinity { cookie: Some("SID".into()), same_site: SameSite::Strict, ..Affinity::default() });
    let redirect = edge(route(&[], strict.clone()), InsecurePolicy::Redirect);
    assert_eq!(text(&redirect), format!("SID={VALUE}; path=/; HttpOnly; Secure; SameSite=Strict"));
    let none = edge(route(&[], RoutePolicy::default()), InsecurePolicy::None);
    assert!(text(&none).ends_with("; HttpOnly; Secure; SameSite=None"));
    // Clients may also use clear text.
    let allow = edge(route(&[], strict), InsecurePolicy::Allow);
    assert!(text(&allow).ends_with("; path=/; HttpOnly"), "{}", text(&allow));

    assert_eq!(Cookie::of(&route(&[], with(Affinity { disabled: true, ..Affinity::default() }))), None);
    let mut passthrough = route(&[], RoutePolicy::default());
    passthrough.kind = RouteKind::Passthrough { redirect: false };
    assert_eq!(Cookie::of(&passthrough), None);
}

#[test]
fn values_differ_by_route_and_endpoint() {
    let (cart, other) = (route(&[], RoutePolicy::default()).id, RouteId::of_route("shop", "x"));
    let tags = [Tag::of(&cart, address(1)), Tag::of(&cart, address(2)), Tag::of(&other, address(1))];
    assert!(tags[0] != tags[1] && tags[0] != tags[2] && tags[1] != tags[2]);
    assert_eq!(Tag::of(&cart, address(1)), tags[0]);
}

#[test]
fn the_cookie_is_taken_out_and_the_others_stay() {
    let tag = Some(Tag(0x84153095416270e8a687a75e1ad2980e));
    let ours = format!("sid={VALUE}");
    let cases: &[(&[&str], &[&str], Option<Tag>)] = &[
        (&[], &[], None),
        (&["a=1; b=2"], &["a=1; b=2"], None),
        (&[&ours], &[], tag),
        (&[&format!("a=1; {ours}; b=2")], &["a=1; b=2"], tag),
        (&[&format!("a=1;{ours};b=2;")], &["a=1; b=2"], tag),
        (&["a=1", &ours, "b=2"], &["a=1", "b=2"], tag),
        // Names are compared as a whole and by case; a value may look like a pair.
        (&[&format!("x{ours}; SID={VALUE}; q=\"{ours}\"")], &[&format!("x{ours}; SID={VALUE}; q=\"{ours}\"")], None),
        // An unknown value names no endpoint, and is not forwarded either.
        (&["sid=; a=1"], &["a=1"], None),
        (&["sid=84153095416270E8A687A75E1AD2980E"], &[], None),
        (&["sid=84153095416270e8a687a75e1ad2980"], &[], None),
        (&["sid=+4153095416270e8a687a75e1ad2980e"], &[], None),
        (&[&format!("sid=nonsense; {ours}")], &[], tag),
        (&["a=\u{e9}; b", &ours], &["a=\u{e9}; b"], tag),
        (&[";;", &ours], &[], tag),
    ];
    for (sent, left, found) in cases {
        let mut fields = headers(COOKIE, sent);
        assert_eq!(named("sid").take(&mut fields), *found, "{sent:?}");
        let bytes: Vec<&[u8]> = fields.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(bytes, left.iter().map(|field| field.as_bytes()).collect::<Vec<_>>(), "{sent:?}");
    }
}

#[test]
fn a_response_gets_one_cookie_of_that_name() {
    let cookie = named("sid");
    let mut fields = headers(SET_COOKIE, &["a=1; path=/", "sid=app; HttpOnly", "sidecar=2"]);
    cookie.set(&mut fields, None);
    assert_eq!(texts(&fields, SET_COOKIE), ["a=1; path=/", "sidecar=2"]);
    assert_eq!(texts(&fields, CACHE_CONTROL), [""; 0]);
    cookie.set(&mut fields, cookie.value(Tag(1)));
    let ours = "sid=00000000000000000000000000000001; path=/; HttpOnly";
    assert_eq!(texts(&fields, SET_COOKIE), ["a=1; path=/", "sidecar=2", ours]);
    assert_eq!(texts(&fields, CACHE_CONTROL), ["private"]);
}
