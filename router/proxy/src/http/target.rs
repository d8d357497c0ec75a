//! Validates that a request names its host and path unambiguously (RFC 9112 §3.2, RFC 9113 §8.3.1).

use std::borrow::Cow;
use std::sync::OnceLock;

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderValue, Method, StatusCode, Version, request};
use router_common::hostname::{HostBuilder, NormalName, field_text, normalise_authority};
use router_model::names::Hostname;
use router_table::decide::{method_is_routed, target_is_valid};

use super::upgrade::is_websocket_connect;
use crate::http::message_framing::looks_like_framing;

/// Target of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum RequestTarget<'f> {
    /// A path on a host.
    Resource {
        /// The host; `None` for an IP address, which no route has.
        host: Option<Cow<'f, Hostname>>,
        /// The authority as sent, which the endpoint gets as `Host`.
        authority: HeaderValue,
    },
    /// `OPTIONS *`: the router itself (RFC 9110 §9.3.7).
    Router,
}

/// Why a request is rejected before the route look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A request needs exactly one Host.
    #[error("there is not exactly one host")]
    HostCount,
    /// The host is not a valid name or address.
    #[error("the host is not valid")]
    BadHost,
    /// Host and request target name different hosts.
    #[error("the host and the request target differ")]
    Mismatch,
    /// Two Content-Length fields, one beside Transfer-Encoding, or a field that may be read as one of them.
    #[error("the length is ambiguous")]
    AmbiguousLength,
    /// An HTTP/2 field value that begins or ends with a blank, which HTTP/1 would strip (RFC 9113 §8.2.1).
    #[error("a field's value begins or ends with a blank")]
    BlankEdge,
    /// An invalid byte in the path or query.
    #[error("the path or query is not valid")]
    BadPath,
    /// See [`method_is_routed`].
    #[error("the method is not allowed")]
    Method,
}

impl TargetError {
    /// Status of the response.
    pub fn status(self) -> StatusCode {
        match self {
            TargetError::Method => StatusCode::METHOD_NOT_ALLOWED,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// The first authority of a connection's requests, and its parsed host: nearly all requests have the same.
#[derive(Debug, Default)]
pub struct FirstHost(OnceLock<(HeaderValue, Option<Hostname>)>);

/// Parses and validates the target of a request.
///
/// # Errors
/// The first violation.
pub fn read_target<'f>(head: &request::Parts, first: &'f FirstHost) -> Result<RequestTarget<'f>, TargetError> {
    if !method_is_routed(head.method.as_str()) && !is_websocket_connect(head) {
        return Err(TargetError::Method);
    }
    // For HTTP/1 `message_framing` admits a single field; h2 admits two equal ones.
    let mut lengths = head.headers.get_all(CONTENT_LENGTH).iter();
    if lengths.next().is_some() && (lengths.next().is_some() || head.headers.contains_key(TRANSFER_ENCODING)) {
        return Err(TargetError::AmbiguousLength);
    }
    if head.version == Version::HTTP_2 {
        // The HTTP/1 parser has stripped them,
        if head.headers.values().any(has_blank_edge) {
            return Err(TargetError::BlankEdge);
        }
        // and `message_framing` has rejected these.
        if head.headers.keys().any(|name| looks_like_framing(name.as_str().as_bytes())) {
            return Err(TargetError::AmbiguousLength);
        }
    }
    let mut fields = head.headers.get_all(HOST).iter();
    let field = fields.next();
    if fields.next().is_some() {
        return Err(TargetError::HostCount);
    }
    let in_uri = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    // Optional in HTTP/2 (RFC 9113 §8.3.1), required in HTTP/1 even with a target in absolute form.
    let written = match (field, in_uri, head.version) {
        (Some(field), _, _) => field.as_bytes(),
        (None, Some(in_uri), Version::HTTP_2) => in_uri,
        (None, _, _) => return Err(TargetError::HostCount),
    };
    if let Some(in_uri) = in_uri.filter(|in_uri| *in_uri != written) {
        let (builder, _) = normalise_authority(written).map_err(|_| TargetError::BadHost)?;
        let (other, _) = normalise_authority(in_uri).map_err(|_| TargetError::BadHost)?;
        if field_text(&other.exact) != field_text(&builder.exact) || !ports_agree(&builder, &other) {
            return Err(TargetError::Mismatch);
        }
    }
    let host = first.host(written)?;
    if head.uri.path() == "*" && head.method == Method::OPTIONS {
        return Ok(RequestTarget::Router);
    }
    if !target_is_valid(head.uri.path(), head.uri.query()) {
        return Err(TargetError::BadPath);
    }
    // The client's field value is shared, not copied.
    let authority = match field {
        Some(field) => field.clone(),
        None => HeaderValue::from_bytes(written).map_err(|_| TargetError::BadHost)?,
    };
    Ok(RequestTarget::Resource { host, authority })
}

impl FirstHost {
    /// The host of an authority; `None` for an IP address.
    fn host(&self, written: &[u8]) -> Result<Option<Cow<'_, Hostname>>, TargetError> {
        if let Some((_, host)) = self.0.get().filter(|(authority, _)| authority.as_bytes() == written) {
            return Ok(host.as_ref().map(Cow::Borrowed));
        }
        let host = match NormalName::of_authority(written) {
            Some(name) => Some(Hostname::from(name)),
            None => {
                let (builder, kind) = normalise_authority(written).map_err(|_| TargetError::BadHost)?;
                Hostname::of(&builder, kind)
            }
        };
        if self.0.get().is_none()
            && let Ok(authority) = HeaderValue::from_bytes(written)
        {
            self.0.get_or_init(|| (authority, host.clone()));
        }
        Ok(host.map(Cow::Owned))
    }
}

fn has_blank_edge(value: &HeaderValue) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_blank(value.as_bytes().first()) || is_blank(value.as_bytes().last())
}

/// A port in only one of them is not a contradiction.
fn ports_agree(a: &HostBuilder, b: &HostBuilder) -> bool {
    match (a.port(), b.port()) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    }
}

#[cfg(test)]
mod tests;
