//! A query: a URL with optional method and header fields, or a server name alone.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use router_model::names::Hostname;
use router_table::path_form::PathForm;
use serde::{Deserialize, Serialize};

const GET: &str = "GET";
const HOST: &str = "host";

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryProtocol {
    /// Clear text.
    Http,
    /// TLS.
    Https,
}

impl QueryProtocol {
    /// Default port of the scheme.
    pub const fn default_port(self) -> u16 {
        match self {
            QueryProtocol::Http => 80,
            QueryProtocol::Https => 443,
        }
    }
}

impl fmt::Display for QueryProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QueryProtocol::Http => "http",
            QueryProtocol::Https => "https",
        })
    }
}

/// A query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// `Https` for a server name alone.
    pub protocol: QueryProtocol,
    /// The host, in lower case, without a trailing dot.
    pub host: String,
    /// The port; `None` for a server name without one, which applies to any router.
    pub port: Option<u16>,
    /// The path without its query string; `None` for a server name alone.
    pub path: Option<String>,
    /// The query string of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The method; `None`: GET.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Header fields, with names in lower case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The client; `None` for any. An IPv4-mapped address is stored as IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
}

/// Why a text is not a valid query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The scheme is neither `http` nor `https`.
    #[error("{0:?} is not a supported scheme; write http://… or https://…, or a server name alone")]
    Scheme(String),
    /// The host is missing or invalid.
    #[error("{0:?} is not a valid host name; write one such as shop.example.test")]
    Host(String),
    /// The port is invalid.
    #[error("{0:?} is not a valid port; write a number from 1 to 65535")]
    Port(String),
    /// The client's address is invalid.
    #[error("{0:?} is not an IP address; write one such as 192.0.2.7")]
    From(String),
    /// The method is invalid.
    #[error("{0:?} is not a valid method; write one such as POST")]
    Method(String),
    /// The header field is invalid.
    #[error("{0:?} is not a valid header field; write one such as 'X-Version: 2'")]
    Header(String),
    /// A method or header field needs a URL.
    #[error("a server name has neither method nor header fields; write https://{0}/…")]
    NoRequest(String),
}

impl Query {
    /// Parses `http://host[:port][/path][?query]`, the same with `https`, or `host[:port]` as a server name (SNI).
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let (protocol, rest, is_url) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (QueryProtocol::Http, rest, true),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (QueryProtocol::Https, rest, true),
            Some((scheme, _)) => return Err(QueryError::Scheme(scheme.to_owned())),
            None => (QueryProtocol::Https, text, false),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if !is_url && !target.is_empty() {
            return Err(QueryError::Host(rest.to_owned()));
        }
        let after_bracket = authority.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match authority.get(after_bracket..).and_then(|tail| tail.rfind(':')) {
            Some(at) => {
                let (host, port) = authority.split_at(after_bracket + at);
                (host, Some(port.trim_start_matches(':')))
            }
            None => (authority, None),
        };
        let port = match port {
            Some(port) => match port.parse() {
                Ok(number) if number != 0 => Some(number),
                _ => return Err(QueryError::Port(port.to_owned())),
            },
            None => is_url.then(|| protocol.default_port()),
        };
        let is_address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
        let host = match Hostname::parse(host) {
            Ok(name) => name.to_string(),
            Err(_) if is_address => host.to_owned(),
            Err(_) => return Err(QueryError::Host(host.to_owned())),
        };
        let target = target.split('#').next().unwrap_or_default();
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let path = if path.is_empty() { "/" } else { path };
        Ok(Query {
            protocol,
            host,
            port,
            path: is_url.then(|| path.to_owned()),
            query: query.map(str::to_owned),
            method: None,
            headers: Vec::new(),
            from: None,
        })
    }

    /// The same query with this method.
    ///
    /// # Errors
    /// The method is invalid, or the query is a server name.
    pub fn with_method(mut self, method: &str) -> Result<Self, QueryError> {
        if !is_token(method) {
            return Err(QueryError::Method(method.to_owned()));
        }
        if self.path.is_none() {
            return Err(QueryError::NoRequest(self.host));
        }
        self.method = Some(method.to_owned()).filter(|method| method != GET);
        Ok(self)
    }

    /// The same query with one more header field, in curl's syntax: `Name: value`; `Name;` has an empty value, and
    /// `Name:` is not sent. `Host` replaces the host of the request.
    ///
    /// # Errors
    /// The field is invalid, or the query is a server name.
    pub fn with_header(mut self, line: &str) -> Result<Self, QueryError> {
        let invalid = || QueryError::Header(line.to_owned());
        let (name, value) = match (line.split_once(':'), line.strip_suffix(';')) {
            (Some((name, value)), _) => (name, Some(value.trim_matches([' ', '\t'])).filter(|value| !value.is_empty())),
            (None, Some(name)) => (name, Some("")),
            (None, None) => return Err(invalid()),
        };
        let is_text = |value: &str| value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f));
        let name = name.to_ascii_lowercase();
        let is_host = |value: &str| Query::parse(&format!("http://{value}")).is_ok_and(|host| host.path() == "/");
        if !is_token(&name) || !value.is_none_or(is_text) || (name == HOST && !value.is_none_or(is_host)) {
            return Err(invalid());
        }
        if self.path.is_none() {
            return Err(QueryError::NoRequest(self.host));
        }
        if let Some(value) = value {
            self.headers.push((name, value.to_owned()));
        }
        Ok(self)
    }

    /// The same query from a client with this address.
    #[must_use]
    pub fn from_client(self, client: IpAddr) -> Self {
        Query { from: Some(client.to_canonical()), ..self }
    }

    /// The path as in a request.
    pub fn path(&self) -> &str {
        self.path.as_deref().unwrap_or("/")
    }

    /// The path in the form in which it is compared.
    pub fn path_in(&self, form: PathForm) -> Cow<'_, str> {
        form.of(self.path())
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.method.as_deref().unwrap_or(GET)
    }

    /// The first header field of this name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers(name).next()
    }

    /// All header fields of this name (lower case).
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// `Host` as a client writes it: without the scheme's default port.
    pub fn authority(&self) -> String {
        let port = self.port.filter(|port| *port != self.protocol.default_port());
        match (self.header(HOST), port) {
            (Some(written), _) => written.to_owned(),
            (None, Some(port)) => format!("{}:{port}", self.host),
            (None, None) => self.host.clone(),
        }
    }

    /// The host as a name; `None` for an IP address.
    pub fn hostname(&self) -> Option<Hostname> {
        Hostname::parse(&self.host).ok()
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        if let Some(method) = &self.method {
            write!(f, "{method} ")?;
        }
        match &self.path {
            Some(path) => {
                write!(f, "{}://{}{port}{path}", self.protocol, self.host)?;
                self.query.as_ref().map_or(Ok(()), |query| write!(f, "?{query}"))?;
            }
            None => write!(f, "TLS server name {}{port}", self.host)?,
        }
        self.headers.iter().try_for_each(|(name, value)| write!(f, ", {name}: {value}"))?;
        self.from.map_or(Ok(()), |client| write!(f, ", asked by {client}"))
    }
}

/// True for a valid method or field name (`token`, RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    let is_sign = |byte| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_sign(byte))
}
