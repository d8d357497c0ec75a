//! A request as rules match it.

use std::borrow::Cow;
use std::cell::OnceCell;

use http::header::HOST;
use http::{HeaderValue, request};
use router_table::lookup;
use router_table::path_form::PathForm;

use super::upgrade::is_websocket_connect;

/// A request's head, and the parts that rules must not read from it directly.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'h> {
    head: &'h request::Parts,
    authority: &'h HeaderValue,
    method: &'h str,
    path: &'h RequestPath<'h>,
}

/// The path of a request, and its first normalized form that differs from the sent one: a router uses a single form,
/// which each of its rules may request.
#[derive(Debug)]
pub struct RequestPath<'h> {
    sent: &'h str,
    formed: OnceCell<(PathForm, Cow<'h, str>)>,
}

impl<'h> RequestPath<'h> {
    /// The path as sent.
    pub fn new(sent: &'h str) -> Self {
        RequestPath { sent, formed: OnceCell::new() }
    }

    fn get(&self, form: PathForm) -> Cow<'_, str> {
        if form == PathForm::AsSent {
            return Cow::Borrowed(self.sent);
        }
        let (known, path) = self.formed.get_or_init(|| (form, form.of(self.sent)));
        if *known == form { Cow::Borrowed(path) } else { form.of(self.sent) }
    }

    /// The path in this form, if it differs from the sent path.
    pub fn changed(&self, form: PathForm) -> Option<String> {
        let path = self.get(form);
        (*path != *self.sent).then(|| path.into_owned())
    }
}

impl<'h> RequestView<'h> {
    /// A request for this authority. A WebSocket request counts as `GET` in every version of HTTP.
    pub fn new(head: &'h request::Parts, authority: &'h HeaderValue, path: &'h RequestPath<'h>) -> Self {
        let method = if is_websocket_connect(head) { "GET" } else { head.method.as_str() };
        RequestView { head, authority, method, path }
    }
}

impl lookup::Request for RequestView<'_> {
    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        self.path.sent
    }

    fn path_in(&self, form: PathForm) -> Cow<'_, str> {
        self.path.get(form)
    }

    fn query(&self) -> Option<&str> {
        self.head.uri.query()
    }

    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        // HTTP/2 has no such method.
        if name == HOST.as_str() {
            return Some(Cow::Borrowed(self.authority.as_bytes()));
        }
        lookup::joined(name, self.head.headers.get_all(name).into_iter().map(HeaderValue::as_bytes))
    }
}
