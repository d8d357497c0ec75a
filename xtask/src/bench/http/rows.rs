//! The measures: rows of the tables.

/// Bytes of a large body.
pub const BODY: usize = 64 * 1024;

/// What uploads and downloads carry.
pub fn body() -> Vec<u8> {
    vec![b'd'; BODY]
}

/// Action of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// HTTP/1.1 requests on connections that stay.
    Requests {
        /// Over TLS.
        tls: bool,
        /// Method.
        method: &'static str,
        /// Path.
        path: &'static str,
        /// Bytes of the request's body.
        body: usize,
    },
    /// A full TLS handshake and one request on each connection.
    Handshakes,
    /// HTTP/2 over TLS, this many requests at a time on each connection.
    Streams(u32),
    /// WebSocket messages there and back.
    Messages,
}

/// One row of the tables.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// For `--only`.
    pub id: &'static str,
    /// In tables.
    pub title: &'static str,
    /// Unit of the count.
    pub unit: &'static str,
    /// Action of a client.
    pub kind: LoadKind,
    /// At a time.
    pub connections: usize,
    /// Whether it is measured with many hosts as well.
    pub many: bool,
    /// Least ratio of Sluice's rate to the best peer's.
    pub bar: Option<f64>,
    /// Whether Sluice's 99th percentile must be no greater than that peer's.
    pub tail: bool,
}

impl Measure {
    /// Whether its rate is measured once more, over all ways in [`super::turns`]: those of wrk's that have bars.
    pub fn is_in_turns(&self) -> bool {
        self.bar.is_some() && matches!(self.kind, LoadKind::Requests { .. })
    }
}

const SMALL: LoadKind = LoadKind::Requests { tls: false, method: "GET", path: "/", body: 0 };

/// All of them.
pub const MEASURES: [Measure; 7] = [
    Measure {
        id: "cleartext",
        title: "clear text, keep-alive",
        unit: "requests",
        kind: SMALL,
        connections: 64,
        many: true,
        bar: Some(0.95),
        tail: true,
    },
    Measure {
        id: "tls",
        title: "TLS, keep-alive",
        unit: "requests",
        kind: LoadKind::Requests { tls: true, method: "GET", path: "/", body: 0 },
        connections: 64,
        many: true,
        bar: Some(1.0),
        tail: true,
    },
    Measure {
        id: "handshakes",
        title: "TLS, new connections",
        unit: "connections",
        kind: LoadKind::Handshakes,
        connections: 16,
        many: true,
        bar: Some(1.15),
        tail: false,
    },
    Measure {
        id: "h2",
        title: "HTTP/2, 8 streams",
        unit: "requests",
        kind: LoadKind::Streams(8),
        connections: 16,
        many: true,
        bar: Some(0.9),
        tail: false,
    },
    Measure {
        id: "download",
        title: "64 KiB down",
        unit: "requests",
        kind: LoadKind::Requests { tls: false, method: "GET", path: "/64k", body: 0 },
        connections: 16,
        many: false,
        bar: None,
        tail: false,
    },
    Measure {
        id: "upload",
        title: "64 KiB up",
        unit: "requests",
        kind: LoadKind::Requests { tls: false, method: "POST", path: "/own/upload", body: BODY },
        connections: 16,
        many: false,
        bar: None,
        tail: false,
    },
    Measure {
        id: "websocket",
        title: "WebSocket echo",
        unit: "messages",
        kind: LoadKind::Messages,
        connections: 64,
        many: false,
        bar: None,
        tail: false,
    },
];
