//! A request as rules look at it.

use std::borrow::Cow;
use std::cell::OnceCell;

use http::header::HOST;
use http::{HeaderValue, request};
use router_table::lookup;
use router_table::path_form::PathForm;

use super::upgrade::is_websocket_connect;

/// A request's head, and what is not to be read from it as it stands.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'h> {
    head: &'h request::Parts,
    authority: &'h HeaderValue,
    method: &'h str,
    path: &'h AskedPath<'h>,
}

/// The path of a request, and the first form other than that in which it was sent that it is asked for in: a router has
/// one such form, and each of its rules may ask.
#[derive(Debug)]
pub struct AskedPath<'h> {
    sent: &'h str,
    formed: OnceCell<(PathForm, Cow<'h, str>)>,
}

impl<'h> AskedPath<'h> {
    /// The path as it was sent.
    pub fn new(sent: &'h str) -> Self {
        AskedPath { sent, formed: OnceCell::new() }
    }

    fn get(&self, form: PathForm) -> Cow<'_, str> {
        if form == PathForm::AsSent {
            return Cow::Borrowed(self.sent);
        }
        let (known, path) = self.formed.get_or_init(|| (form, form.of(self.sent)));
        if *known == form { Cow::Borrowed(path) } else { form.of(self.sent) }
    }

    /// The path in this form, if that is another text.
    pub fn changed(&self, form: PathForm) -> Option<String> {
        let path = self.get(form);
        (*path != *self.sent).then(|| path.into_owned())
    }
}

impl<'h> RequestView<'h> {
    /// A request for this authority. A WebSocket is asked for by `GET`, whatever the version of HTTP.
    pub fn new(head: &'h request::Parts, authority: &'h HeaderValue, path: &'h AskedPath<'h>) -> Self {
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
        // HTTP/2 has none.
        if name == HOST.as_str() {
            return Some(Cow::Borrowed(self.authority.as_bytes()));
        }
        lookup::joined(name, self.head.headers.get_all(name).into_iter().map(HeaderValue::as_bytes))
    }
}
