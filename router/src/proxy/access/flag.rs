//! The words for why.

/// Why a connection or request ended as it did: the `flags` of the access log, and the cause that a response names
/// when asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Nothing to remark.
    Fine,
    /// No route serves this host and path.
    NoRoute,
    /// Rules have the host, and none of them matches the request (404).
    NoRule,
    /// The rule that has the request answers it with an error itself: it has no backend that can be used.
    RuleAnswer,
    /// The route has no usable endpoint.
    NoEndpoints,
    /// It was the share of a backend that cannot be used: the rule names none, or may not.
    InvalidBackend,
    /// No endpoint accepted a connection.
    UpstreamConnectFailure,
    /// An endpoint did not connect in time.
    UpstreamConnectTimeout,
    /// An endpoint did not answer in time.
    UpstreamTimeout,
    /// The endpoint did not go on with its response in time.
    UpstreamStalled,
    /// The endpoint ended its connection, or reset it, before the response had begun.
    UpstreamHungUp,
    /// The endpoint did so before the response was complete.
    UpstreamClosed,
    /// TLS with the endpoint failed; above all, its certificate was refused.
    UpstreamCertificate,
    /// There is no CA to verify the endpoint with, so nothing was sent.
    NoDestinationCa,
    /// The client ended the connection first.
    ClientGone,
    /// The client sent or read nothing for too long.
    ClientTimeout,
    /// The client's address is not in the route's allow-list.
    SourceNotAllowed,
    /// The client has shown no certificate whose subject is allowed (403).
    ClientCertificate,
    /// The client's address has asked for more than the route's limits allow (429).
    RateLimited,
    /// Every endpoint has as many requests as it may have, or the router as many descriptors, and none ended in time
    /// (503).
    Busy,
    /// The request belongs on another connection (421).
    Misdirected,
    /// The request is not one that can be routed (4xx, 505).
    BadRequest,
    /// The connection came without a request.
    EmptyRequest,
    /// The first bytes are no ClientHello that can be routed.
    BadHello,
    /// The TLS handshake with the client failed.
    ClientHandshake,
    /// Nothing moved for the tunnel timeout.
    Idle,
}

impl Flag {
    /// The short word in the access log.
    pub const fn code(self) -> &'static str {
        match self {
            Flag::Fine => "-",
            Flag::NoRoute => "NR",
            Flag::NoRule => "NM",
            Flag::RuleAnswer => "RA",
            Flag::NoEndpoints => "NE",
            Flag::InvalidBackend => "IB",
            Flag::UpstreamConnectFailure => "UF",
            Flag::UpstreamConnectTimeout | Flag::UpstreamTimeout | Flag::UpstreamStalled => "UT",
            Flag::UpstreamHungUp | Flag::UpstreamClosed => "UC",
            Flag::UpstreamCertificate => "UV",
            Flag::NoDestinationCa => "NCA",
            Flag::ClientGone => "DC",
            Flag::ClientTimeout => "CT",
            Flag::SourceNotAllowed => "SNA",
            Flag::ClientCertificate => "CC",
            Flag::RateLimited => "RL",
            Flag::Busy => "UO",
            Flag::Misdirected => "MD",
            Flag::BadRequest => "BR",
            Flag::EmptyRequest => "ER",
            Flag::BadHello => "BH",
            Flag::ClientHandshake => "CH",
            Flag::Idle => "ID",
        }
    }

    /// The cause in words, as the `x-sluice-cause` response header gives it.
    pub const fn cause(self) -> &'static str {
        match self {
            Flag::Fine => "none",
            Flag::NoRoute => "no-route",
            Flag::NoRule => "no-match",
            Flag::RuleAnswer => "rule-answer",
            Flag::NoEndpoints => "no-endpoints",
            Flag::InvalidBackend => "invalid-backend",
            Flag::UpstreamConnectFailure => "backend-unreachable",
            Flag::UpstreamConnectTimeout | Flag::UpstreamTimeout | Flag::UpstreamStalled => "backend-timeout",
            Flag::UpstreamHungUp | Flag::UpstreamClosed => "backend-closed",
            Flag::UpstreamCertificate => "backend-certificate",
            Flag::NoDestinationCa => "no-destination-ca",
            Flag::ClientGone => "client-gone",
            Flag::ClientTimeout => "client-timeout",
            Flag::SourceNotAllowed => "source-not-allowed",
            Flag::ClientCertificate => "client-certificate",
            Flag::RateLimited => "rate-limited",
            Flag::Busy => "backends-busy",
            Flag::Misdirected => "misdirected",
            Flag::BadRequest => "bad-request",
            Flag::EmptyRequest => "empty-request",
            Flag::BadHello => "bad-client-hello",
            Flag::ClientHandshake => "client-handshake",
            Flag::Idle => "idle",
        }
    }

    /// HAProxy's termination state (HAProxy 2.8 configuration manual, 8.5): who ended it, and when.
    pub const fn termination(self) -> &'static str {
        match self {
            Flag::Fine => "--",
            Flag::NoRoute | Flag::NoRule | Flag::RuleAnswer => "SC",
            Flag::NoEndpoints | Flag::InvalidBackend | Flag::UpstreamConnectFailure => "SC",
            Flag::UpstreamCertificate | Flag::NoDestinationCa => "SC",
            Flag::UpstreamConnectTimeout => "sC",
            Flag::UpstreamTimeout => "sH",
            Flag::UpstreamStalled => "sD",
            Flag::UpstreamHungUp => "SH",
            Flag::UpstreamClosed => "SD",
            Flag::ClientGone => "CD",
            Flag::ClientTimeout => "cR",
            Flag::EmptyRequest | Flag::ClientHandshake => "CR",
            Flag::SourceNotAllowed | Flag::ClientCertificate | Flag::RateLimited => "PR",
            Flag::Misdirected | Flag::BadRequest | Flag::BadHello => "PR",
            Flag::Busy => "sQ",
            Flag::Idle => "cD",
        }
    }
}
