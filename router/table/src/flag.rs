//! The one list of causes: why a connection or request ended as it did. Each has a word, which responses, the access log
//! and `explain` share, and is a row of `docs/causes.md`.

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $code:literal, $termination:literal;)*) => {
        /// Why a connection or request ended as it did.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Flag {
            $($(#[$doc])* $name,)*
        }

        impl Flag {
            /// All of them, in the order of a request's way.
            pub const ALL: &[Flag] = &[$(Flag::$name,)*];

            /// The cause as one word: in the response header `x-sluice-cause`, as `cause` in the access log, and in
            /// `explain`. No two causes have the same.
            pub const fn cause(self) -> &'static str {
                match self {
                    $(Flag::$name => $word,)*
                }
            }

            /// The short code in the access log (`flags`): causes of one kind share it.
            pub const fn code(self) -> &'static str {
                match self {
                    $(Flag::$name => $code,)*
                }
            }

            /// HAProxy's termination state (HAProxy 2.8 configuration manual, 8.5): who ended it, and at which step.
            pub const fn termination(self) -> &'static str {
                match self {
                    $(Flag::$name => $termination,)*
                }
            }
        }
    };
}

flags! {
    /// Nothing to remark.
    Fine = "none", "-", "--";

    /// The connection came without a request.
    EmptyRequest = "empty-request", "ER", "CR";
    /// The first bytes are no ClientHello that can be routed.
    BadHello = "bad-client-hello", "BH", "PR";
    /// The TLS handshake with the client failed.
    ClientHandshake = "client-handshake", "CH", "CR";
    /// The request is not one that can be routed (4xx, 505).
    BadRequest = "bad-request", "BR", "PR";
    /// The client sent or read nothing for too long.
    ClientTimeout = "client-timeout", "CT", "cR";
    /// The client ended the connection first.
    ClientGone = "client-gone", "DC", "CD";
    /// The client has sent more over HTTP/2 than it may beside requests, and its connection was ended (GOAWAY with
    /// ENHANCE_YOUR_CALM).
    ClientFloods = "client-floods", "CF", "PR";
    /// Nothing moved for the tunnel timeout.
    Idle = "idle", "ID", "cD";
    /// The request belongs on another connection (421).
    Misdirected = "misdirected", "MD", "PR";
    /// Packets of the connection came in fragments that the kernel's path cannot carry; further ones of the client are
    /// relayed.
    Fragmented = "fragmented", "FR", "PD";
    /// The client's address is not in the route's allow-list.
    SourceNotAllowed = "source-not-allowed", "SNA", "PR";
    /// A rule or policy of the host that came later does not let the connection's packets pass.
    HostRule = "host-rule", "HR", "PD";
    /// The client has shown no certificate whose subject is allowed (403).
    ClientCertificate = "client-certificate", "CC", "PR";
    /// The client's address has asked for more than the route's limits allow (429).
    RateLimited = "rate-limited", "RL", "PR";

    /// The router of the connection's listener was removed after the client had connected.
    NoRouter = "no-router", "NR", "SC";
    /// No route serves this host and path.
    NoRoute = "no-route", "NR", "SC";
    /// Rules have the host, and none of them matches the request (404).
    NoRule = "no-match", "NM", "SC";
    /// The rule that has the request answers it with an error itself: it has no backend that can be used.
    RuleAnswer = "rule-answer", "RA", "SC";
    /// It was the share of a backend that cannot be used: the rule names none, or may not.
    InvalidBackend = "invalid-backend", "IB", "SC";
    /// The route has no usable endpoint.
    NoEndpoints = "no-endpoints", "NE", "SC";
    /// Every endpoint has as many requests as it may have, and none ended in time.
    Busy = "backends-busy", "UO", "sQ";
    /// The router has as many descriptors as it may have, and none became free in time.
    NoDescriptor = "no-descriptors", "UO", "RC";

    /// The endpoint is an address at which the router itself listens, so nothing was sent.
    OwnListener = "own-listener", "OL", "SC";
    /// All endpoints were known to be down, and none could be connected to in the short time that such have.
    BackendsDown = "backends-down", "UF", "SC";
    /// No endpoint accepted a connection.
    UpstreamConnectFailure = "backend-unreachable", "UF", "SC";
    /// An endpoint did not connect in time.
    UpstreamConnectTimeout = "backend-connect-timeout", "UT", "sC";
    /// An endpoint accepted a connection, and did not complete the TLS handshake in time.
    UpstreamTlsTimeout = "backend-tls-timeout", "UT", "sC";
    /// There is no CA to verify the endpoint with, so nothing was sent.
    NoDestinationCa = "no-destination-ca", "NCA", "SC";
    /// The endpoint did not speak TLS, or refused the handshake.
    UpstreamTls = "backend-tls", "UTL", "SC";
    /// No CA that is trusted for the endpoint has signed its certificate.
    UpstreamUnknownCa = "backend-certificate-unknown-ca", "UV", "SC";
    /// The endpoint's certificate is for other names.
    UpstreamCertificateName = "backend-certificate-name", "UV", "SC";
    /// The endpoint's certificate, or one above it, is not valid any more.
    UpstreamCertificateExpired = "backend-certificate-expired", "UV", "SC";
    /// The endpoint's certificate, or one above it, is not valid yet.
    UpstreamCertificateNotYetValid = "backend-certificate-not-yet-valid", "UV", "SC";
    /// The endpoint's certificate is one of X.509 version 1 or 2, which webpki does not read.
    UpstreamCertificateVersion = "backend-certificate-version", "UV", "SC";
    /// The endpoint's certificate was refused for another reason: its purpose, algorithm, signature or encoding.
    UpstreamCertificate = "backend-certificate", "UV", "SC";

    /// An endpoint did not answer in time.
    UpstreamTimeout = "backend-timeout", "UT", "sH";
    /// The time that the rule gives the request was over before an endpoint had answered.
    RuleTimeout = "rule-timeout", "UT", "sH";
    /// The endpoint ended its connection or the request's stream, or reset it, before its response's head was complete.
    UpstreamHungUp = "backend-closed", "UC", "SH";
    /// What the endpoint sent as its response's head is no HTTP.
    UpstreamInvalid = "backend-invalid", "UP", "PH";
    /// The head of the endpoint's response has too many fields, or is too long.
    UpstreamHeadTooLarge = "backend-head-too-large", "UP", "PH";
    /// The endpoint's response has another transfer coding than `chunked`.
    UpstreamCoding = "backend-transfer-coding", "UP", "PH";
    /// The endpoint switched protocols unasked, or not to what was asked for.
    UpstreamSwitch = "backend-switch", "UP", "PH";

    /// The endpoint did not go on with its response's content in time.
    UpstreamStalled = "backend-stalled", "UT", "sD";
    /// The time that the rule gives the request was over within the response's content.
    RuleTimeoutInContent = "rule-timeout-in-content", "UT", "sD";
    /// The endpoint ended its connection or the request's stream, or reset it, within the response's content.
    UpstreamClosed = "backend-broke-off", "UC", "SD";
    /// The content of the endpoint's response is not framed as HTTP has it.
    UpstreamInvalidContent = "backend-invalid-content", "UP", "PD";
}

#[cfg(test)]
mod tests;
