//! Detection of preflight requests.

use std::borrow::Cow;

use super::*;

/// A request with this method and these fields.
struct Sent<'a>(&'a str, &'a [(&'a str, &'a str)]);

impl Request for Sent<'_> {
    fn method(&self) -> &str {
        self.0
    }

    fn path(&self) -> &str {
        "/"
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        self.1.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_bytes().into())
    }
}

#[test]
fn only_options_with_its_two_fields_is_a_preflight() {
    let fields = [("origin", "https://a.test"), ("access-control-request-method", "PUT")];
    let asks = |method: &str, fields: &[(&str, &str)]| preflight(&Sent(method, fields));
    assert_eq!(asks("OPTIONS", &fields).as_deref(), Some("PUT"));
    assert_eq!(asks("GET", &fields), None);
    assert_eq!(asks("OPTIONS", &fields[..1]), None);
    assert_eq!(asks("OPTIONS", &fields[1..]), None);
}
