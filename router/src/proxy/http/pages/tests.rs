//! Pages and redirects.

use super::*;

fn accepting(types: &[&'static str]) -> HeaderMap {
    types.iter().map(|value| (ACCEPT, HeaderValue::from_static(value))).collect()
}

#[test]
fn only_an_unusual_https_port_is_named() {
    let location = |port| redirect("a.test", port, "/x?y=z").unwrap().headers()[LOCATION].clone();
    assert_eq!(location(None), "https://a.test/x?y=z");
    assert_eq!(location(Some(443)), "https://a.test/x?y=z");
    assert_eq!(location(Some(8443)), "https://a.test:8443/x?y=z");
}

#[test]
fn text_is_for_those_who_do_not_want_html() {
    let kind = |types| {
        let page = error(StatusCode::SERVICE_UNAVAILABLE, Flag::NoRoute, &accepting(types), false);
        page.headers()[CONTENT_TYPE].clone()
    };
    for html in [&[][..], &["*/*"], &["text/html;q=0.9, application/json"], &["application/json", "text/*"]] {
        assert_eq!(kind(html), "text/html; charset=utf-8", "{html:?}");
    }
    for text in [&["application/json"][..], &["text/plain"], &["image/png", "application/xml"]] {
        assert_eq!(kind(text), "text/plain; charset=utf-8", "{text:?}");
    }
}

#[test]
fn connections_end_after_what_may_have_confused_them() {
    let closes = |status| error(status, Flag::BadRequest, &HeaderMap::new(), false).headers().contains_key(CONNECTION);
    assert!(closes(StatusCode::BAD_REQUEST) && closes(StatusCode::REQUEST_TIMEOUT));
    assert!(!closes(StatusCode::SERVICE_UNAVAILABLE) && !closes(StatusCode::FORBIDDEN));
}

#[test]
fn the_cause_is_a_field_only_when_asked_for() {
    let cause = |show| error(StatusCode::SERVICE_UNAVAILABLE, Flag::NoEndpoints, &HeaderMap::new(), show);
    assert_eq!(cause(true).headers()[CAUSE], "no-endpoints");
    assert!(!cause(false).headers().contains_key(CAUSE));
}
