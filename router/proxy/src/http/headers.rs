//! Header fields that a proxy takes out, adds and leaves alone.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;

use http::header::{CONNECTION, CONTENT_LENGTH, FORWARDED, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Version};
use hyper::body::Frame;
use router_table::policy::forwarded::ForwardedHeaders;

use super::join::join;
use crate::tls::client_certificate::ClientCertificate;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_PROTO_VERSION: HeaderName = HeaderName::from_static("x-forwarded-proto-version");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// What endpoints are told of a connection, made once.
#[derive(Debug)]
pub struct Told {
    client: HeaderValue,
    /// How its elements of `Forwarded` begin: the client as that names it (RFC 7239 §6), and what comes next.
    begin: HeaderValue,
    port: HeaderValue,
    /// The first element of `Forwarded` that was told, with the authority and scheme that it tells: those of nearly all
    /// requests of a connection.
    forwarded: OnceLock<(HeaderValue, Box<str>, HeaderValue)>,
}

impl Told {
    /// Of a connection from `client` to `listener`.
    pub fn of(client: IpAddr, listener: SocketAddr) -> Self {
        // Addresses and numbers are visible ASCII.
        let value = |text: String| HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown"));
        let begin: String = match client {
            IpAddr::V4(client) => format!("for={client};host="),
            IpAddr::V6(client) => format!("for=\"[{client}]\";host="),
        };
        let port = HeaderValue::from(listener.port());
        Told { client: value(client.to_string()), begin: value(begin), port, forwarded: OnceLock::new() }
    }
}

/// What the endpoint is told about one request of a client's connection.
#[derive(Clone, Copy, Debug)]
pub struct ClientView<'c> {
    /// What is told about all of them.
    pub told: &'c Told,
    /// Whether over TLS.
    pub tls: bool,
    /// The version of HTTP.
    pub version: Version,
    /// The authority as the client wrote it.
    pub authority: &'c HeaderValue,
    /// How it is told.
    pub policy: ForwardedHeaders,
    /// The certificate that it has shown.
    pub certificate: Option<&'c ClientCertificate>,
    /// Fields that belong to no single connection stay as they were sent: the kernel may carry such requests as they
    /// are, and what an endpoint gets must not depend on who carries.
    pub as_sent: bool,
}

/// Prepares a request's fields for the endpoint. Returns the protocol that the client asks to upgrade to.
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
    // The client's own field, mostly.
    if headers.get(HOST) != Some(view.authority) {
        headers.insert(HOST, view.authority.clone());
    }
    tell_forwarded(headers, view);
    upgrade
}

/// Prepares a response's fields for the client. A length beside `Transfer-Encoding` is not the content's, and goes with
/// that (RFC 9112 §6.3).
pub fn prepare_response(headers: &mut HeaderMap) {
    let own = OwnFields::of(headers);
    own.strip(headers);
    if own.has(&TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
}

/// Prepares the fields behind a body, if this is them. Those of a connection have no place there (RFC 9110 §6.5.1), and
/// over HTTP/2 they would make the whole message malformed (RFC 9113 §8.2.2).
pub fn prepare_trailers<D>(frame: &mut Frame<D>) {
    if let Some(trailers) = frame.trailers_mut() {
        OwnFields::of(trailers).strip(trailers);
    }
}

/// Whether a field is a list that has this token.
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
    // Switching to HTTP/2 would take the requests out of the router's sight.
    let hidden = tokens(protocol).any(|name| name.eq_ignore_ascii_case("h2c") || name.starts_with("HTTP/"));
    (!hidden).then(|| protocol.clone())
}

/// Which fields of its connection alone a message has (RFC 9110 §7.6.1), found in one pass: most have none.
struct OwnFields(u8);

/// A static, as a constant would be made anew for every field.
static OWN_FIELDS: [HeaderName; 6] = [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TE, TRANSFER_ENCODING, UPGRADE];

impl OwnFields {
    fn of(headers: &HeaderMap) -> Self {
        OwnFields(headers.keys().fold(0, |found, name| found | Self::bit(name.as_str())))
    }

    /// The place of a name in [`OWN_FIELDS`], as a bit. Told by length first, most names cost one comparison.
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

    /// Takes them out. What `Connection` lists goes too, except fields that only an attacker would list: routing, framing
    /// and the record of who asked.
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

/// Whether a `Connection` may list a field: nearly all say one of two words, which are none.
fn lists_fields(connection: &HeaderValue) -> bool {
    let options: [&[u8]; 2] = [b"keep-alive", b"close"];
    !options.iter().any(|option| connection.as_bytes().eq_ignore_ascii_case(option))
}

fn must_stay(name: &HeaderName) -> bool {
    let name = name.as_str();
    matches!(name, "host" | "content-length" | "forwarded") || name.starts_with("x-forwarded-")
}

/// Takes out what only the router may say: `Proxy` (httpoxy), the `X-SSL…` fields of client certificates, and fields
/// with `_` that CGI-like backends, which read it as `-`, would take for one that says who asks or where a message
/// ends.
fn strip_forged(headers: &mut HeaderMap) {
    let forged: Vec<HeaderName> = headers.keys().filter(|name| is_forged(name)).cloned().collect();
    for name in forged {
        headers.remove(name);
    }
}

/// Prepares the fields behind a request's body, if this is them. An endpoint may take them for fields of the head
/// (RFC 9110 §6.5.1 warns of that), so those that say who asks, for what or how, are taken out whatever the policy is.
pub fn prepare_request_trailers<D>(frame: &mut Frame<D>) {
    let Some(trailers) = frame.trailers_mut() else { return };
    OwnFields::of(trailers).strip(trailers);
    let forged: Vec<HeaderName> = trailers.keys().filter(|name| says_who(name.as_str())).cloned().collect();
    for name in forged {
        trailers.remove(name);
    }
}

/// Of client certificates.
const CERTIFICATE: &str = "x-ssl";

fn is_forged(name: &HeaderName) -> bool {
    let name = name.as_str();
    if !name.contains('_') {
        return name == "proxy" || name.starts_with(CERTIFICATE);
    }
    says_who(name)
}

/// Whether a field, by its name with `_` read as `-`, says who asks or where a message ends.
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

/// Whether a name is another one when `_` is read as `-`. Header names are ASCII.
fn reads_as(name: &str, other: &str) -> bool {
    let read = name.bytes().map(|byte| if byte == b'_' { b'-' } else { byte });
    read.eq(other.bytes())
}

/// Tells of the client's connection as the policy says. `Append` adds one line each after those of proxies further out,
/// `Replace` puts the router's own in their place, `IfNone` adds the fields that are not there, each for itself
/// (OpenShift router, haproxy-config.template). `Replace` also takes out a client's `X-Forwarded-Proto-Version` where
/// there is none to tell, which HAProxy leaves in.
fn tell_forwarded(headers: &mut HeaderMap, view: &ClientView<'_>) {
    let names =
        [X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PORT, X_FORWARDED_PROTO, X_FORWARDED_PROTO_VERSION, FORWARDED];
    match view.policy {
        ForwardedHeaders::Never => return,
        ForwardedHeaders::Replace => names.iter().for_each(|name| drop(headers.remove(name))),
        ForwardedHeaders::Append | ForwardedHeaders::IfNone => {}
    }
    headers.reserve(names.len());
    let own_proto = if view.tls { "https" } else { "http" };
    tell(headers, view, X_FORWARDED_FOR, || view.told.client.clone());
    tell(headers, view, X_FORWARDED_HOST, || view.authority.clone());
    tell(headers, view, X_FORWARDED_PORT, || view.told.port.clone());
    tell(headers, view, X_FORWARDED_PROTO, || HeaderValue::from_static(own_proto));
    if view.version == Version::HTTP_2 {
        tell(headers, view, X_FORWARDED_PROTO_VERSION, || HeaderValue::from_static("h2"));
    }
    if let Some(forwarded) = forwarded(headers, view, own_proto) {
        tell(headers, view, FORWARDED, || forwarded);
    }
}

/// This connection's element of `Forwarded` (RFC 7239 §4).
fn forwarded(headers: &HeaderMap, view: &ClientView<'_>, own_proto: &str) -> Option<HeaderValue> {
    let proto = told_proto(headers).unwrap_or(own_proto);
    if let Some((authority, told, value)) = view.told.forwarded.get()
        && authority == view.authority
        && **told == *proto
    {
        return Some(value.clone());
    }
    let quote = HeaderValue::from_static(if is_token(view.authority.as_bytes()) { "" } else { "\"" });
    let end = match proto {
        "http" => HeaderValue::from_static(";proto=http"),
        "https" => HeaderValue::from_static(";proto=https"),
        other => HeaderValue::from_str(&format!(";proto={other}")).ok()?,
    };
    let value = join([&view.told.begin, &quote, view.authority, &quote, &end]);
    view.told.forwarded.get_or_init(|| (view.authority.clone(), proto.into(), value.clone()));
    Some(value)
}

fn tell(headers: &mut HeaderMap, view: &ClientView<'_>, name: HeaderName, value: impl FnOnce() -> HeaderValue) {
    if view.policy != ForwardedHeaders::IfNone || !headers.contains_key(&name) {
        headers.append(name, value());
    }
}

/// The scheme that the last `X-Forwarded-Proto` tells, which with `IfNone` may be a proxy's further out; `None` for what
/// is no token, which could smuggle parameters into `Forwarded`.
fn told_proto(headers: &HeaderMap) -> Option<&str> {
    let last = headers.get_all(X_FORWARDED_PROTO).iter().next_back()?;
    tokens(last).last().filter(|proto| is_token(proto.as_bytes()))
}

/// RFC 9110 §5.6.2; a valid authority has none of the other token characters.
fn is_token(text: &[u8]) -> bool {
    // Without an end in between, many bytes are looked at in one step.
    text.iter().fold(true, |is, byte| is & (byte.is_ascii_alphanumeric() | matches!(byte, b'-' | b'.' | b'_')))
}

#[cfg(test)]
mod tests;
