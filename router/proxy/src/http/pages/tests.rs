//! Pages and redirects.

use super::*;

fn accepting(types: &[&'static str]) -> HeaderMap {
    types.iter().map(|value| (ACCEPT, HeaderValue::from_static(value))).collect()
}

#[test]
fn text_is_for_clients_that_do_not_accept_html() {
    let kind = |types| {
        let page = error(StatusCode::SERVICE_UNAVAILABLE, PageFormat::wanted(&accepting(types)));
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
    for status in [400, 408, 414, 421, 431, 501, 505] {
        assert!(ends_connection(StatusCode::from_u16(status).unwrap()), "{status}");
    }
    for status in [200, 302, 403, 405, 429, 502, 503, 504] {
        assert!(!ends_connection(StatusCode::from_u16(status).unwrap()), "{status}");
    }
}

#[test]
fn a_page_of_its_own_is_given_as_it_is() {
    let text = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nX-A: 1\r\nX-A: 2\r\nConnection: close\r\n\r\nsoon\n";
    let page = custom(&ErrorPage::parse(text).unwrap(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!((page.status(), &page.body()[..]), (StatusCode::OK, &b"soon\n"[..]));
    assert_eq!(page.headers()[CONTENT_TYPE], "text/plain");
    assert_eq!(page.headers().get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
    assert!(!page.headers().contains_key("connection"));
}
