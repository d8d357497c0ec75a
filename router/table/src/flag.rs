//! The list of causes: why a connection or request ended. Each has a word, which responses, the access log and
//! `explain` share, and a row in `docs/causes.md`.

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $code:literal, $termination:literal;)*) => {
        /// Why a connection or request ended.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Flag {
            $($(#[$doc])* $name,)*
        }

        impl Flag {
            /// All causes, in the order in which a request can meet them.
            pub const ALL: &[Flag] = &[$(Flag::$name,)*];

            /// The cause as one word, unique to it: in the response header `x-sluice-cause`, as `cause` in the access
            /// log, and in `explain`.
            pub const fn cause(self) -> &'static str {
                match self {
                    $(Flag::$name => $word,)*
                }
            }

            /// The short code in the access log (`flags`), shared by causes of one kind.
            pub const fn code(self) -> &'static str {
                match self {
                    $(Flag::$name => $code,)*
                }
            }

            /// HAProxy's termination state (HAProxy 2.8 configuration manual, 8.5): which side ended it, and in which
            /// phase.
            pub const fn termination(self) -> &'static str {
                match self {
                    $(Flag::$name => $termination,)*
                }
            }
        }
    };
}

flags! {
    /// No failure.
    Fine = "none", "-", "--";

    /// The connection ended without a request.
    EmptyRequest = "empty-request", "ER", "CR";
    /// The first bytes are not a ClientHello that can be routed.
    BadHello = "bad-client-hello", "BH", "PR";
    /// The TLS handshake with the client failed.
    ClientHandshake = "client-handshake", "CH", "CR";
    /// The request cannot be routed (4xx, 505).
    BadRequest = "bad-request", "BR", "PR";
    /// The client exceeded a timeout for sending or reading.
    ClientTimeout = "client-timeout", "CT", "cR";
    /// The client ended the connection first.
    ClientGone = "client-gone", "DC", "CD";
    /// The client exceeded the limits for HTTP/2 frames beside requests; its connection was ended (GOAWAY with
    /// ENHANCE_YOUR_CALM).
    ClientFloods = "client-floods", "CF", "PR";
    /// No data in either direction for the tunnel timeout.
    Idle = "idle", "ID", "cD";
    /// The request belongs on another connection (421).
    Misdirected = "misdirected", "MD", "PR";
    /// The connection's packets arrived in fragments that the kernel path cannot carry; further connections of the
    /// client are relayed.
    Fragmented = "fragmented", "FR", "PD";
    /// The client's address is not in the route's allow-list.
    SourceNotAllowed = "source-not-allowed", "SNA", "PR";
    /// A later firewall rule or IPsec policy of the host drops the connection's packets.
    HostRule = "host-rule", "HR", "PD";
    /// The client did not present a certificate with an allowed subject (403).
    ClientCertificate = "client-certificate", "CC", "PR";
    /// The client's address exceeded the route's limits (429).
    RateLimited = "rate-limited", "RL", "PR";

    /// The router of the connection's listener was removed after the client had connected.
    NoRouter = "no-router", "NR", "SC";
    /// No route serves this host and path.
    NoRoute = "no-route", "NR", "SC";
    /// The host has rules, and none of them matches the request (404).
    NoRule = "no-match", "NM", "SC";
    /// The matching rule answers the request itself: it has no usable backend, or specifies the status.
    RuleAnswer = "rule-answer", "RA", "SC";
    /// The request was in the share of a backend that cannot be used: it does not exist, or the reference is not
    /// permitted.
    InvalidBackend = "invalid-backend", "IB", "SC";
    /// The route has no usable endpoint.
    NoEndpoints = "no-endpoints", "NE", "SC";
    /// Every endpoint was at its limit of requests, and none ended in time.
    Busy = "backends-busy", "UO", "sQ";
    /// The router was at its limit of file descriptors, and none was freed in time.
    NoDescriptor = "no-descriptors", "UO", "RC";

    /// The endpoint is one of the router's own listeners, so nothing was sent.
    OwnListener = "own-listener", "OL", "SC";
    /// All endpoints were known to be down, and none connected within the short timeout for such endpoints.
    BackendsDown = "backends-down", "UF", "SC";
    /// No endpoint accepted a connection.
    UpstreamConnectFailure = "backend-unreachable", "UF", "SC";
    /// An endpoint did not connect in time.
    UpstreamConnectTimeout = "backend-connect-timeout", "UT", "sC";
    /// An endpoint accepted a connection but did not complete the TLS handshake in time.
    UpstreamTlsTimeout = "backend-tls-timeout", "UT", "sC";
    /// There is no CA to verify the endpoint with, so nothing was sent.
    NoDestinationCa = "no-destination-ca", "NCA", "SC";
    /// The endpoint did not use TLS, or rejected the handshake.
    UpstreamTls = "backend-tls", "UTL", "SC";
    /// The endpoint's certificate chain does not end at a CA trusted for it.
    UpstreamUnknownCa = "backend-certificate-unknown-ca", "UV", "SC";
    /// The endpoint's certificate is for other names.
    UpstreamCertificateName = "backend-certificate-name", "UV", "SC";
    /// The endpoint's certificate, or one above it in the chain, has expired.
    UpstreamCertificateExpired = "backend-certificate-expired", "UV", "SC";
    /// The endpoint's certificate, or one above it in the chain, is not valid yet.
    UpstreamCertificateNotYetValid = "backend-certificate-not-yet-valid", "UV", "SC";
    /// The endpoint's certificate is of X.509 version 1 or 2, which webpki does not support.
    UpstreamCertificateVersion = "backend-certificate-version", "UV", "SC";
    /// The endpoint's certificate was rejected for another reason: its purpose, algorithm, signature or encoding.
    UpstreamCertificate = "backend-certificate", "UV", "SC";

    /// An endpoint did not answer in time.
    UpstreamTimeout = "backend-timeout", "UT", "sH";
    /// The rule's request timeout expired before an endpoint had answered.
    RuleTimeout = "rule-timeout", "UT", "sH";
    /// The endpoint ended its connection or the request's stream, or reset it, before its response's head was complete.
    UpstreamHungUp = "backend-closed", "UC", "SH";
    /// The endpoint's response head is not valid HTTP.
    UpstreamInvalid = "backend-invalid", "UP", "PH";
    /// The head of the endpoint's response has too many fields, or is too long.
    UpstreamHeadTooLarge = "backend-head-too-large", "UP", "PH";
    /// The endpoint's response has another transfer coding than `chunked`.
    UpstreamCoding = "backend-transfer-coding", "UP", "PH";
    /// The endpoint switched protocols without a request for it, or to another protocol.
    UpstreamSwitch = "backend-switch", "UP", "PH";

    /// The endpoint stopped sending its response's content.
    UpstreamStalled = "backend-stalled", "UT", "sD";
    /// The rule's request timeout expired within the response's content.
    RuleTimeoutInContent = "rule-timeout-in-content", "UT", "sD";
    /// The endpoint ended its connection or the request's stream, or reset it, within the response's content.
    UpstreamClosed = "backend-broke-off", "UC", "SD";
    /// The framing of the response's content is not valid HTTP.
    UpstreamInvalidContent = "backend-invalid-content", "UP", "PD";
}

#[cfg(test)]
mod tests;
