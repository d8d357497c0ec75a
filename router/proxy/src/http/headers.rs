//! Header fields that the proxy removes, adds or keeps.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;

use http::header::{CONNECTION, CONTENT_LENGTH, FORWARDED, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Version};
use hyper::body::Frame;
use router_table::policy::forwarded::ForwardedHeaders;

use super::join_values::join;
use crate::tls::client_certificate::ClientCertificate;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_PROTO_VERSION: HeaderName = HeaderName::from_static("x-forwarded-proto-version");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Values of forwarding fields that are the same for all requests of a connection.
#[derive(Debug)]
pub struct ForwardedValues {
    client: HeaderValue,
    /// Start of its `Forwarded` elements: the client's node identifier (RFC 7239 §6), and the next parameter's name.
    begin: HeaderValue,
    port: HeaderValue,
    /// The first `Forwarded` element, with the authority and scheme that it contains: those of nearly all requests of
    /// the connection.
    forwarded: OnceLock<(HeaderValue, Box<str>, HeaderValue)>,
}

impl ForwardedValues {
    /// For a connection from `client` to `listener`.
    pub fn of(client: IpAddr, listener: SocketAddr) -> Self {
        // Addresses and numbers are visible ASCII.
        let value = |text: String| HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown"));
        let begin: String = match client {
            IpAddr::V4(client) => format!("for={client};host="),
            IpAddr::V6(client) => format!("for=\"[{client}]\";host="),
        };
        let port = HeaderValue::from(listener.port());
        ForwardedValues { client: value(client.to_string()), begin: value(begin), port, forwarded: OnceLock::new() }
    }
}

/// A client's request as the forwarding fields describe it.
#[derive(Clone, Copy, Debug)]
pub struct ClientView<'c> {
    /// Values of the connection.
    pub forwarded: &'c ForwardedValues,
    /// Whether the connection uses TLS.
    pub tls: bool,
    /// HTTP version.
    pub version: Version,
    /// Authority as sent.
    pub authority: &'c HeaderValue,
    /// How existing fields are treated.
    pub policy: ForwardedHeaders,
    /// The client's certificate.
    pub certificate: Option<&'c ClientCertificate>,
    /// Whether to keep other fields as sent: the kernel may carry such requests unchanged, and an endpoint must receive
    /// the same from both data paths.
    pub as_sent: bool,
}

/// Prepares a request's fields for the endpoint. Returns the protocol of a requested upgrade.
pub fn prepare_request(headers: &mut HeaderMap, view: &ClientView<'_>) -> Option<HeaderValue> {
    let own = OwnFields::of(headers);
    let upgrade = if own.has(&UPGRADE) { requested_upgrade(headers, view.version) } else { None };
    let trailers = own.has(&TE) && headers.get_all(TE).iter().any(|te| has_token(te, "trailers"));
    own.strip(headers);
    if !view.as_sent {
        strip_forged(headers);
    }
    for (name, value) in view.certificate.map(ClientCertificate::headers).unwrap_or_default() {
        headers.insert(name, value.clone());
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(protocol) = &upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol.clone());
    }
    // Usually the client's own field is kept.
    if headers.get(HOST) != Some(view.authority) {
        headers.insert(HOST, view.authority.clone());
    }
    add_forwarded(headers, view);
    upgrade
}

/// Prepares a response's fields for the client. A Content-Length beside `Transfer-Encoding` is invalid and removed (RFC
/// 9112 §6.3).
pub fn prepare_response(headers: &mut HeaderMap) {
    let own = OwnFields::of(headers);
    own.strip(headers);
    if own.has(&TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
}

/// Prepares trailers, if the frame has them: removes connection-specific fields (RFC 9110 §6.5.1), which over HTTP/2
/// would make the message malformed (RFC 9113 §8.2.2).
pub fn prepare_trailers<D>(frame: &mut Frame<D>) {
    if let Some(trailers) = frame.trailers_mut() {
        OwnFields::of(trailers).strip(trailers);
    }
}

/// Whether a list-valued field contains this token.
pub fn has_token(value: &HeaderValue, token: &str) -> bool {
    tokens(value).any(|found| found.eq_ignore_ascii_case(token))
}

fn tokens(value: &HeaderValue) -> impl Iterator<Item = &str> {
    value.to_str().unwrap_or("").split(',').map(str::trim).filter(|token| !token.is_empty())
}

fn requested_upgrade(headers: &HeaderMap, version: Version) -> Option<HeaderValue> {
    let asked = version == Version::HTTP_11 && headers.get_all(CONNECTION).iter().any(|c| has_token(c, "upgrade"));
    let mut protocols = headers.get_all(UPGRADE).iter();
    let protocol = protocols.next().filter(|_| asked && protocols.next().is_none())?;
    // After a switch to HTTP/2 the router could not inspect requests.
    let hidden = tokens(protocol).any(|name| name.eq_ignore_ascii_case("h2c") || name.starts_with("HTTP/"));
    (!hidden).then(|| protocol.clone())
}

/// Connection-specific fields of a message (RFC 9110 §7.6.1), found in one pass: most messages have none.
struct OwnFields(u8);

/// A static, because a constant would be built for each field.
static OWN_FIELDS: [HeaderName; 6] = [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TE, TRANSFER_ENCODING, UPGRADE];

impl OwnFields {
    fn of(headers: &HeaderMap) -> Self {
        OwnFields(headers.keys().fold(0, |found, name| found | Self::bit(name.as_str())))
    }

    /// The index of a name in [`OWN_FIELDS`], as a bit. The length is compared first, so most names cost one
    /// comparison.
    fn bit(name: &str) -> u8 {
        match name {
            "connection" => 1,
            "keep-alive" => 1 << 1,
            "proxy-connection" => 1 << 2,
            "te" => 1 << 3,
            "transfer-encoding" => 1 << 4,
            "upgrade" => 1 << 5,
            _ => 0,
        }
    }

    fn has(&self, name: &HeaderName) -> bool {
        self.0 & Self::bit(name.as_str()) != 0
    }

    /// Removes them, and the fields that `Connection` lists, except routing, framing and forwarding fields, which only
    /// an attacker would list.
    fn strip(&self, headers: &mut HeaderMap) {
        if self.has(&CONNECTION) && headers.get_all(CONNECTION).iter().any(lists_fields) {
            let listed: Vec<HeaderName> = headers
                .get_all(CONNECTION)
                .iter()
                .flat_map(tokens)
                .filter_map(|token| HeaderName::try_from(token).ok())
                .filter(|name| !must_stay(name))
                .collect();
            for name in listed {
                headers.remove(name);
            }
        }
        for (at, name) in OWN_FIELDS.iter().enumerate() {
            if self.0 & 1 << at != 0 {
                headers.remove(name);
            }
        }
    }
}

/// Whether a `Connection` field may list fields: nearly all contain `close` or `keep-alive` alone.
fn lists_fields(connection: &HeaderValue) -> bool {
    let options: [&[u8]; 2] = [b"keep-alive", b"close"];
    !options.iter().any(|option| connection.as_bytes().eq_ignore_ascii_case(option))
}

fn must_stay(name: &HeaderName) -> bool {
    let name = name.as_str();
    matches!(name, "host" | "content-length" | "forwarded") || name.starts_with("x-forwarded-")
}

/// Removes fields that only the router may set: `Proxy` (httpoxy), the `X-SSL…` fields of client certificates, and
/// fields with `_` that CGI-like backends would read as forwarding or framing fields, because they map `-` to `_`.
fn strip_forged(headers: &mut HeaderMap) {
    let forged: Vec<HeaderName> = headers.keys().filter(|name| is_forged(name)).cloned().collect();
    for name in forged {
        headers.remove(name);
    }
}

/// Prepares a request's trailers, if the frame has them. An endpoint may merge trailers into the head (RFC 9110
/// §6.5.1), so forwarding and framing fields are removed whatever the policy.
pub fn prepare_request_trailers<D>(frame: &mut Frame<D>) {
    let Some(trailers) = frame.trailers_mut() else { return };
    OwnFields::of(trailers).strip(trailers);
    let forged: Vec<HeaderName> = trailers.keys().filter(|name| says_who(name.as_str())).cloned().collect();
    for name in forged {
        trailers.remove(name);
    }
}

/// Prefix of client certificate fields.
const CERTIFICATE: &str = "x-ssl";

fn is_forged(name: &HeaderName) -> bool {
    let name = name.as_str();
    if !name.contains('_') {
        return name == "proxy" || name.starts_with(CERTIFICATE);
    }
    says_who(name)
}

/// Whether a field, with `_` read as `-`, describes the client or frames the message.
fn says_who(name: &str) -> bool {
    const NAMES: [&str; 13] = [
        "connection",
        "content-length",
        "forwarded",
        "host",
        "keep-alive",
        "proxy",
        "te",
        "transfer-encoding",
        "true-client-ip",
        "upgrade",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-real-ip",
    ];
    const FAMILIES: [&str; 3] = ["x-forwarded-", "x-original-", CERTIFICATE];
    let begins = |with: &&str| name.len() >= with.len() && reads_as(&name[..with.len()], with);
    FAMILIES.iter().any(begins) || NAMES.iter().any(|known| reads_as(name, known))
}

/// Whether a name equals another one when `_` is read as `-`. Field names are ASCII.
fn reads_as(name: &str, other: &str) -> bool {
    let read = name.bytes().map(|byte| if byte == b'_' { b'-' } else { byte });
    read.eq(other.bytes())
}

/// Adds forwarding fields according to the policy. `Append` adds a line after those of earlier proxies, `Replace`
/// replaces them, `IfNone` adds each field that is absent (OpenShift router, haproxy-config.template). `Replace` also
/// removes a client's `X-Forwarded-Proto-Version` when there is no value for it; HAProxy keeps it.
fn add_forwarded(headers: &mut HeaderMap, view: &ClientView<'_>) {
    let names =
        [X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PORT, X_FORWARDED_PROTO, X_FORWARDED_PROTO_VERSION, FORWARDED];
    match view.policy {
        ForwardedHeaders::Never => return,
        ForwardedHeaders::Replace => names.iter().for_each(|name| drop(headers.remove(name))),
        ForwardedHeaders::Append | ForwardedHeaders::IfNone => {}
    }
    headers.reserve(names.len());
    let own_proto = if view.tls { "https" } else { "http" };
    add(headers, view, X_FORWARDED_FOR, || view.forwarded.client.clone());
    add(headers, view, X_FORWARDED_HOST, || view.authority.clone());
    add(headers, view, X_FORWARDED_PORT, || view.forwarded.port.clone());
    add(headers, view, X_FORWARDED_PROTO, || HeaderValue::from_static(own_proto));
    if view.version == Version::HTTP_2 {
        add(headers, view, X_FORWARDED_PROTO_VERSION, || HeaderValue::from_static("h2"));
    }
    if let Some(forwarded) = forwarded(headers, view, own_proto) {
        add(headers, view, FORWARDED, || forwarded);
    }
}

/// This connection's element of `Forwarded` (RFC 7239 §4).
fn forwarded(headers: &HeaderMap, view: &ClientView<'_>, own_proto: &str) -> Option<HeaderValue> {
    let proto = forwarded_proto(headers).unwrap_or(own_proto);
    if let Some((authority, cached_proto, value)) = view.forwarded.forwarded.get()
        && authority == view.authority
        && **cached_proto == *proto
    {
        return Some(value.clone());
    }
    let quote = HeaderValue::from_static(if is_token(view.authority.as_bytes()) { "" } else { "\"" });
    let end = match proto {
        "http" => HeaderValue::from_static(";proto=http"),
        "https" => HeaderValue::from_static(";proto=https"),
        other => HeaderValue::from_str(&format!(";proto={other}")).ok()?,
    };
    let value = join([&view.forwarded.begin, &quote, view.authority, &quote, &end]);
    view.forwarded.forwarded.get_or_init(|| (view.authority.clone(), proto.into(), value.clone()));
    Some(value)
}

fn add(headers: &mut HeaderMap, view: &ClientView<'_>, name: HeaderName, value: impl FnOnce() -> HeaderValue) {
    if view.policy != ForwardedHeaders::IfNone || !headers.contains_key(&name) {
        headers.append(name, value());
    }
}

/// The scheme in the last `X-Forwarded-Proto`, which with `IfNone` may come from an earlier proxy; `None` if it is not
/// a token, because it could inject parameters into `Forwarded`.
fn forwarded_proto(headers: &HeaderMap) -> Option<&str> {
    let last = headers.get_all(X_FORWARDED_PROTO).iter().next_back()?;
    tokens(last).last().filter(|proto| is_token(proto.as_bytes()))
}

/// RFC 9110 §5.6.2; a valid authority contains none of the other token characters.
fn is_token(text: &[u8]) -> bool {
    // Without an early exit the loop is vectorized.
    text.iter().fold(true, |is, byte| is & (byte.is_ascii_alphanumeric() | matches!(byte, b'-' | b'.' | b'_')))
}

#[cfg(test)]
mod tests;
