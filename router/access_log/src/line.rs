//! A line of the access log, and its JSON form.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{Method, StatusCode, Version};
use router_model::names::{RouteId, RouterName};
use router_table::flag::Flag;
use router_table::table::ResolvedRoute;
use serde_json::{Map, Value, json};

/// The data path that served a connection or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// Relayed without parsing.
    Relay,
    /// Parsed as HTTP.
    Proxy,
    /// Carried or rejected by the kernel.
    Kernel,
}

impl ServedBy {
    /// Name in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            ServedBy::Relay => "relay",
            ServedBy::Proxy => "proxy",
            ServedBy::Kernel => "kernel",
        }
    }
}

/// Values of captured fields, in the configured order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// `httpCaptureHeaders.request`, with names.
    pub request: Vec<(Arc<str>, Option<String>)>,
    /// `httpCaptureHeaders.response`.
    pub response: Vec<(Arc<str>, Option<String>)>,
    /// `httpCaptureCookies`: the client's `name=value`.
    pub request_cookie: Option<String>,
    /// The value that the response sets.
    pub response_cookie: Option<String>,
}

/// The route of a line.
#[derive(Clone, Debug)]
pub enum LineRoute {
    /// The route as served.
    Resolved(Arc<ResolvedRoute>),
    /// Its name alone, for connections of the kernel data path.
    Named(RouteId),
}

impl LineRoute {
    /// Identifier of the route.
    pub fn id(&self) -> &RouteId {
        match self {
            LineRoute::Resolved(route) => &route.id,
            LineRoute::Named(id) => id,
        }
    }

    /// The route's backend name in OpenShift's router.
    pub fn backend(&self) -> String {
        match self {
            LineRoute::Resolved(route) => route.backend_name(),
            LineRoute::Named(id) => format!("be_tcp:{}:{}", id.namespace, id.name),
        }
    }
}

/// Values of a line. Names from clients (host, path) were stripped of blanks and control characters.
#[derive(Debug)]
pub struct Line {
    /// Start of the connection or request.
    pub began: SystemTime,
    /// Router of the listener.
    pub router: RouterName,
    /// Client address.
    pub client: SocketAddr,
    /// Local address.
    pub listener: SocketAddr,
    /// Whether TLS was terminated here.
    pub tls: bool,
    /// SNI or Host.
    pub host: Option<String>,
    /// Method and version; `None` for relayed connections.
    pub method: Option<(Method, Version)>,
    /// Path without query.
    pub path: Option<String>,
    /// Status of the response.
    pub status: Option<StatusCode>,
    /// The route.
    pub route: Option<LineRoute>,
    /// The endpoint.
    pub endpoint: Option<SocketAddr>,
    /// Bytes from the client.
    pub bytes_in: u64,
    /// Bytes to the client.
    pub bytes_out: u64,
    /// Time until the response's head.
    pub answered: Option<Duration>,
    /// Time until the end.
    pub duration: Duration,
    /// Interim responses that were dropped.
    pub interim_dropped: u64,
    /// Attempts after the first one.
    pub retries: u32,
    /// Why it ended.
    pub flag: Flag,
    /// Which data path served it.
    pub data_path: ServedBy,
    /// Captured fields.
    pub captured: Option<Box<Captured>>,
}

impl Line {
    /// Emits it as an event of the agent's own log.
    pub fn emit(&self) {
        let captured = self.captured.as_ref().map(|captured| Value::from(captured_members(captured)).to_string());
        tracing::info!(
            target: "access",
            router = %self.router,
            client = %self.client,
            listener = %self.listener,
            host = self.host.as_deref().unwrap_or("-"),
            method = self.method.as_ref().map_or("-", |(method, _)| method.as_str()),
            path = self.path.as_deref().unwrap_or("-"),
            status = self.status.map_or(0, |status| status.as_u16()),
            route = %self.route.as_ref().map_or_else(|| "-".to_owned(), |route| route.id().to_string()),
            endpoint = %self.endpoint.map_or_else(|| "-".to_owned(), |to| to.to_string()),
            bytes_in = self.bytes_in,
            bytes_out = self.bytes_out,
            duration_ms = millis(self.duration),
            retries = Some(self.retries).filter(|retries| *retries > 0),
            interim_dropped = Some(self.interim_dropped).filter(|dropped| *dropped > 0),
            flags = self.flag.code(),
            cause = self.cause(),
            datapath = self.data_path.as_str(),
            captured,
        );
    }

    /// The cause of a failure, as one word.
    fn cause(&self) -> Option<&'static str> {
        (self.flag != Flag::Fine).then(|| self.flag.cause())
    }

    /// End of the connection or request.
    pub fn ended(&self) -> SystemTime {
        self.began.checked_add(self.duration).unwrap_or(self.began)
    }

    /// A JSON object; unknown values are omitted.
    pub fn json(&self) -> String {
        let began = jiff::Timestamp::try_from(self.began).unwrap_or_default();
        let mut line = json!({
            "time": format!("{began:.3}"),
            "router": self.router.to_string(),
            "client": self.client.to_string(),
            "listener": self.listener.to_string(),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "duration_ms": millis(self.duration),
            "flags": self.flag.code(),
            "datapath": self.data_path.as_str(),
        });
        let optional = [
            ("host", self.host.as_deref().map(Value::from)),
            ("method", self.method.as_ref().map(|(method, _)| method.as_str().into())),
            ("path", self.path.as_deref().map(Value::from)),
            ("status", self.status.map(|status| status.as_u16().into())),
            ("route", self.route.as_ref().map(|route| route.id().to_string().into())),
            ("endpoint", self.endpoint.map(|to| to.to_string().into())),
            ("retries", Some(self.retries).filter(|retries| *retries > 0).map(Value::from)),
            ("interim_dropped", Some(self.interim_dropped).filter(|dropped| *dropped > 0).map(Value::from)),
            ("cause", self.cause().map(Value::from)),
            ("answered_ms", self.answered.map(|answered| millis(answered).into())),
            ("captured", self.captured.as_ref().map(|captured| captured_members(captured).into())),
        ];
        if let Value::Object(members) = &mut line {
            members.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        line.to_string()
    }
}

/// Captured values: `request` and `response` by name, and `cookie`.
fn captured_members(captured: &Captured) -> Map<String, Value> {
    let by_name = |fields: &[(Arc<str>, Option<String>)]| {
        let found = fields.iter().filter_map(|(name, value)| Some((name.to_string(), value.clone()?.into())));
        found.collect::<Map<_, _>>()
    };
    let mut members = Map::new();
    for (name, fields) in [("request", &captured.request), ("response", &captured.response)] {
        let found = by_name(fields);
        if !found.is_empty() {
            members.insert(name.to_owned(), found.into());
        }
    }
    for (name, cookie) in [("cookie", &captured.request_cookie), ("set_cookie", &captured.response_cookie)] {
        members.extend(cookie.as_ref().map(|cookie| (name.to_owned(), cookie.clone().into())));
    }
    members
}

/// Whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
