//! Requests in the form of each HTTP version.

use super::*;

fn request(fields: &[(&'static str, &'static str)]) -> Request<RequestBody> {
    let mut request = Request::get("/path?query").body(RequestBody::default()).unwrap();
    for (name, value) in fields {
        request.headers_mut().append(*name, HeaderValue::from_static(value));
    }
    request
}

#[test]
fn an_http2_request_names_its_host_in_its_target() {
    let fields = [("host", "shop.test:8443"), ("expect", "100-continue"), ("te", "trailers")];
    let mut request = request(&fields);
    for_http2(&mut request, Scheme::HTTPS, None).unwrap();
    assert_eq!(
        (request.uri().to_string().as_str(), request.version()),
        ("https://shop.test:8443/path?query", Version::HTTP_2)
    );
    assert_eq!(request.headers().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["te"]);
}

#[test]
fn a_request_can_go_from_one_version_to_the_other_and_back() {
    let mut back = request(&[("host", "shop.test")]);
    for_http2(&mut back, Scheme::HTTP, None).unwrap();
    for_http1(&mut back).unwrap();
    assert_eq!(
        (back.uri(), &back.headers()[HOST], back.version()),
        (&Uri::from_static("/path?query"), &HeaderValue::from_static("shop.test"), Version::HTTP_11)
    );
    for_http2(&mut back, Scheme::HTTP, None).unwrap();
    assert_eq!(back.uri(), "http://shop.test/path?query");
}

#[test]
fn cookies_come_in_one_field_over_http1() {
    let crumbs = [("host", "shop.test"), ("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3")];
    let mut request = request(&crumbs);
    for_http1(&mut request).unwrap();
    assert_eq!(request.headers().get_all(COOKIE).iter().collect::<Vec<_>>(), ["a=1; b=2; c=3"]);
}

#[test]
fn a_host_that_is_no_authority_is_the_clients_fault() {
    let trouble = AttemptError::from(for_http2(&mut request(&[("host", "a b")]), Scheme::HTTP, None).unwrap_err());
    assert_eq!((trouble.status, trouble.unseen), (StatusCode::BAD_REQUEST, false));
}
