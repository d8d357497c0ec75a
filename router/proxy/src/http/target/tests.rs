//! Hosts and targets.

use http::Request;

use super::*;

fn head(version: Version, method: &str, uri: &str, fields: &[(&str, &str)]) -> request::Parts {
    let mut builder = Request::builder().version(version).method(method).uri(uri);
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn read(uri: &str, hosts: &[&str]) -> Result<RequestTarget<'static>, TargetError> {
    let fields: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
    let first = FirstHost::default();
    read_target(&head(Version::HTTP_11, "GET", uri, &fields), &first).map(|target| match target {
        RequestTarget::Resource { host, authority } => {
            RequestTarget::Resource { host: host.map(|host| Cow::Owned(host.into_owned())), authority }
        }
        RequestTarget::Router => RequestTarget::Router,
    })
}

fn resource(host: &str, authority: &str) -> Result<RequestTarget<'static>, TargetError> {
    Ok(RequestTarget::Resource {
        host: Hostname::parse(host).ok().map(Cow::Owned),
        authority: HeaderValue::from_str(authority).unwrap(),
    })
}

#[test]
fn host_is_normalised_and_kept() {
    assert_eq!(read("/x", &["a.test"]), resource("a.test", "a.test"));
    assert_eq!(read("/x", &["A.Test.:8080"]), resource("a.test", "A.Test.:8080"));
    let literal = Ok(RequestTarget::Resource { host: None, authority: HeaderValue::from_static("127.0.0.1:80") });
    assert_eq!(read("/x", &["127.0.0.1:80"]), literal);
}

#[test]
fn exactly_one_valid_host() {
    assert_eq!(read("/", &[]), Err(TargetError::HostCount));
    assert_eq!(read("/", &["a.test", "a.test"]), Err(TargetError::HostCount));
    for bad in ["", "a.test,b.test", "u@a.test", "a.test/x", "a test", "a.test:99999", "a..test", "*.w.test"] {
        assert_eq!(read("/", &[bad]), Err(TargetError::BadHost), "{bad}");
    }
}

#[test]
fn absolute_form_must_agree() {
    assert_eq!(read("http://a.test/x", &["a.test"]), resource("a.test", "a.test"));
    assert_eq!(read("http://A.test:80/x", &["a.test"]), resource("a.test", "a.test"));
    assert_eq!(read("http://b.test/x", &["a.test"]), Err(TargetError::Mismatch));
    assert_eq!(read("http://a.test:80/x", &["a.test:81"]), Err(TargetError::Mismatch));
    assert_eq!(read("http://a.test/x", &[]), Err(TargetError::HostCount));
}

#[test]
fn http2_may_leave_host_out() {
    let parts = head(Version::HTTP_2, "GET", "https://a.test/x", &[]);
    assert_eq!(read_target(&parts, &FirstHost::default()), resource("a.test", "a.test"));
    let parts = head(Version::HTTP_2, "GET", "https://a.test/x", &[("host", "b.test")]);
    assert_eq!(read_target(&parts, &FirstHost::default()), Err(TargetError::Mismatch));
}

#[test]
fn methods_and_paths() {
    let options = head(Version::HTTP_11, "OPTIONS", "*", &[("host", "a.test")]);
    assert_eq!(read_target(&options, &FirstHost::default()), Ok(RequestTarget::Router));
    let get = head(Version::HTTP_11, "GET", "*", &[("host", "a.test")]);
    assert_eq!(read_target(&get, &FirstHost::default()), Err(TargetError::BadPath));
    let trace = head(Version::HTTP_11, "TRACE", "/", &[("host", "a.test")]);
    assert_eq!(
        read_target(&trace, &FirstHost::default()).map_err(TargetError::status),
        Err(StatusCode::METHOD_NOT_ALLOWED)
    );
    assert_eq!(read("/a%00b", &["a.test"]), Err(TargetError::BadPath));
    assert_eq!(read("/caf\u{e9}", &["a.test"]), Err(TargetError::BadPath));
    assert_eq!(read("/?caf\u{e9}", &["a.test"]), Err(TargetError::BadPath));
    assert_eq!(read("/?%00", &["a.test"]), resource("a.test", "a.test"));
}

#[test]
fn two_lengths_are_ambiguous() {
    let fields = [("host", "a.test"), ("content-length", "1"), ("transfer-encoding", "chunked")];
    let parts = head(Version::HTTP_11, "POST", "/", &fields);
    assert_eq!(read_target(&parts, &FirstHost::default()), Err(TargetError::AmbiguousLength));
}
