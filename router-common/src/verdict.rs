//! Verdicts about a connection, and every reason: one list for the kernel, the agent and the log.

/// Verdict about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verdict {
    /// The connection is forwarded unmodified to an endpoint of its route; the kernel may do that alone.
    Steer = 1,
    /// The connection is passed to the agent, which terminates, relays or answers it.
    Pass = 2,
    /// The connection is rejected: both sides get a reset.
    Drop = 3,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $verdict:ident, $text:literal;)*) => {
        /// Reason for a verdict. Maps and events contain its code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Reason {
            $($(#[$doc])* $name = $code,)*
        }

        impl Reason {
            /// All reasons, by code.
            pub const ALL: &[Reason] = &[$(Reason::$name,)*];

            /// The verdict of this reason. One exhaustive match: every reason has a verdict.
            #[inline(always)]
            pub const fn verdict(self) -> Verdict {
                match self {
                    $(Reason::$name => Verdict::$verdict,)*
                }
            }

            /// The reason's name in logs, metrics and the output of `sluice`.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Reason::$name => $text,)*
                }
            }

            /// The reason with this code.
            pub const fn from_code(code: u16) -> Option<Reason> {
                match code {
                    $($code => Some(Reason::$name),)*
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    /// The SNI belongs to a passthrough route.
    Passthrough = 1, Steer, "passthrough";
    /// The Host belongs to a single clear-text route that needs no request-level proxy.
    Cleartext = 2, Steer, "cleartext";

    /// The SNI belongs to edge or re-encrypt routes.
    TlsTerminate = 16, Pass, "tls-terminate";
    /// A complete ClientHello without a server name.
    NoSni = 17, Pass, "no-sni";
    /// The server name is an IP address.
    SniAddress = 18, Pass, "sni-address";
    /// No route has the server name, or only one whose host is wider than a one-label wildcard; the agent decides.
    UnknownSni = 19, Pass, "unknown-sni";
    /// The first bytes are not TLS, or not a ClientHello that may be routed; the agent answers with the matching alert.
    BadHello = 20, Pass, "bad-hello";
    /// The ClientHello is longer than the kernel gathers.
    LargeHello = 21, Pass, "large-hello";
    /// The passthrough route needs what the kernel does not implement: limits per client or endpoint, balancing by
    /// source address or by number of connections.
    NeedsRelay = 22, Pass, "needs-relay";

    /// The Host's routes need a request-level proxy: paths, header changes, redirects, cookies.
    NeedsProxy = 32, Pass, "needs-proxy";
    /// A request without a Host name.
    NoHost = 33, Pass, "no-host";
    /// The Host is an IP address.
    HostAddress = 34, Pass, "host-address";
    /// No route has the Host, or only one whose host is wider than a one-label wildcard.
    UnknownHost = 35, Pass, "unknown-host";
    /// The first bytes are not an HTTP/1 request that may be routed; the agent answers.
    BadHead = 36, Pass, "bad-head";
    /// The head is longer than the kernel gathers.
    LargeHead = 37, Pass, "large-head";
    /// The request target is not in origin form.
    TargetForm = 38, Pass, "target-form";
    /// Bytes follow the first head at once: content, or another request, possibly for another host. The proxy
    /// distinguishes them.
    MoreThanHead = 39, Pass, "more-than-head";
    /// The head is ambiguous about where its content ends, or whether it is sent at all. The proxy decides.
    UnclearContent = 40, Pass, "unclear-content";

    /// Data arrived that does not continue the received bytes: reordered, or after a gap.
    OutOfOrder = 48, Pass, "out-of-order";
    /// The handshake was not seen, or was evicted.
    NoHandshake = 49, Pass, "no-handshake";
    /// The map of first flights is full.
    MapFull = 50, Pass, "map-full";
    /// The packet cannot be read (fragments, unusual headers).
    Unreadable = 51, Pass, "unreadable";

    /// The route has no endpoint that the kernel can dial.
    NoEndpoint = 52, Pass, "no-endpoint";
    /// Every source port that was tried is in use.
    PortsTaken = 53, Pass, "ports-taken";
    /// Packets to the client leave by another interface than its packets arrive on, or are encapsulated.
    OtherWayBack = 55, Pass, "other-way-back";
    /// The client's packets are fragmented, and those of another connection could not be carried.
    Fragments = 56, Pass, "fragments";
    /// The map of flows is full.
    FlowsFull = 54, Pass, "flows-full";

    /// The route's allow-list has no entry for the client's address.
    SourceNotAllowed = 64, Drop, "source-not-allowed";

    /// XDP: no host accepts the packet (`gate::arrival::Arrival::is_malformed`).
    Malformed = 65, Drop, "malformed";
    /// XDP: the listener's policy rejects fragments.
    Fragmented = 66, Drop, "fragmented";
    /// XDP: the listener's policy rejects IPv4 options and IPv6 extension headers.
    IpOptions = 67, Drop, "ip-options";
    /// XDP: the source is of a denied network.
    SourceDenied = 68, Drop, "source-denied";
    /// XDP: the source is of no network that may connect.
    SourceNotListed = 69, Drop, "source-not-listed";
    /// XDP: SYNs of the source beyond its rate.
    SourceRate = 70, Drop, "source-syn-rate";
    /// XDP: SYNs of all sources beyond the listener's rate.
    ListenerRate = 71, Drop, "listener-syn-rate";
    /// XDP and TC: the source has as many open connections as it may.
    SourceConnections = 72, Drop, "source-connections";
}

/// Size of per-reason counter arrays, above every code. Code 0 counts events dropped because the ring was full.
pub const REASON_CODES: u32 = 80;

/// Why a connection that the kernel carried ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlowEndReason {
    /// Both sides sent a FIN, and both were acknowledged.
    Finished = 1,
    /// The client sent an RST.
    ClientReset = 2,
    /// The endpoint sent an RST.
    BackendReset = 3,
    /// Every endpoint that was tried refused the connection.
    Refused = 4,
    /// The client began a new connection from the same address and port.
    Replaced = 5,
    /// No packets for the tunnel timeout; the agent deleted the entries.
    Idle = 6,
    /// No endpoint answered; the agent deleted the entries.
    Silent = 7,
    /// A later request of the clear-text connection had another Host.
    OtherHost = 8,
    /// Its packets arrived in fragments that could not be carried; the agent reset it.
    Fragmented = 9,
    /// Where a request had to begin, the clear-text client sent bytes that are not one, or a request whose end is
    /// undetermined.
    Unfollowed = 10,
    /// A later firewall rule or IPsec policy of the host drops its packets; the agent deleted the entries.
    HostRule = 11,
}

impl FlowEndReason {
    /// All reasons, by code.
    pub const ALL: [FlowEndReason; 11] = [
        FlowEndReason::Finished,
        FlowEndReason::ClientReset,
        FlowEndReason::BackendReset,
        FlowEndReason::Refused,
        FlowEndReason::Replaced,
        FlowEndReason::Idle,
        FlowEndReason::Silent,
        FlowEndReason::OtherHost,
        FlowEndReason::Fragmented,
        FlowEndReason::Unfollowed,
        FlowEndReason::HostRule,
    ];

    /// The reason's name in logs and in the output of `sluice`.
    pub const fn text(self) -> &'static str {
        match self {
            FlowEndReason::Finished => "finished",
            FlowEndReason::ClientReset => "client-reset",
            FlowEndReason::BackendReset => "backend-reset",
            FlowEndReason::Refused => "refused",
            FlowEndReason::Replaced => "replaced",
            FlowEndReason::Idle => "idle",
            FlowEndReason::Silent => "silent",
            FlowEndReason::OtherHost => "other-host",
            FlowEndReason::Fragmented => "fragmented",
            FlowEndReason::Unfollowed => "unfollowed",
            FlowEndReason::HostRule => "host-rule",
        }
    }

    /// The reason with this code.
    pub fn from_code(code: u8) -> Option<FlowEndReason> {
        FlowEndReason::ALL.into_iter().find(|reason| *reason as u8 == code)
    }
}

/// Counters of dials and flows; indexes of `dial_stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DialCounter {
    /// Ends that are not reported: the ring was still full when their entries were needed.
    EndsLost = 0,
    /// Connections dialed.
    Dialed = 1,
    /// Connections whose first payload an endpoint has acknowledged.
    Confirmed = 2,
    /// Retransmitted SYNs.
    SynAgain = 3,
    /// Retransmitted first payloads.
    PayloadAgain = 4,
    /// Dials that went on to another endpoint.
    NextEndpoint = 5,
    /// Answers to a SYN that belong to another connection of the endpoint; the dial continues with another port.
    Challenged = 6,
    /// Entries of ended connections whose ports were reused.
    TakenOver = 7,
    /// Connections that every endpoint refused.
    Refused = 8,
    /// Packets of the stack that were dropped because the kernel carries the connection.
    StackSilenced = 9,
    /// Packets that could not be translated and were dropped.
    Untranslated = 10,
    /// Later requests of clear-text connections with another Host.
    OtherHost = 11,
    /// Ends at which the ring was full. The agent's sweep reports them, unless their entries are needed before.
    EndsLate = 12,
    /// Dropped packets of carried connections whose IP options or extension headers no host accepts, such as source
    /// routes.
    RefusedHeaders = 13,
    /// Dropped fragments of carried connections: they could not be carried.
    LostFragments = 14,
    /// Connections ended for lost fragments.
    Fragmented = 15,
    /// Dropped SYNs of other programs: the kernel carries a connection with their addresses and ports.
    Clashed = 16,
    /// Clear-text connections reset because the client's later requests cannot be followed.
    Unfollowed = 17,
    /// SYNs answered with a cookie.
    SynCookies = 18,
    /// Handshakes that a cookie's acknowledgement completed, and that the kernel may carry.
    CookiesConfirmed = 19,
    /// Packets that XDP forwarded (`--xdp-forward`).
    XdpForwarded = 20,
}

impl DialCounter {
    /// All counters with their names, by index.
    pub const ALL: [(DialCounter, &'static str); 21] = [
        (DialCounter::EndsLost, "ends-lost"),
        (DialCounter::Dialed, "dialed"),
        (DialCounter::Confirmed, "confirmed"),
        (DialCounter::SynAgain, "syn-again"),
        (DialCounter::PayloadAgain, "payload-again"),
        (DialCounter::NextEndpoint, "next-endpoint"),
        (DialCounter::Challenged, "challenged"),
        (DialCounter::TakenOver, "taken-over"),
        (DialCounter::Refused, "refused"),
        (DialCounter::StackSilenced, "stack-silenced"),
        (DialCounter::Untranslated, "untranslated"),
        (DialCounter::OtherHost, "other-host"),
        (DialCounter::EndsLate, "ends-late"),
        (DialCounter::RefusedHeaders, "refused-headers"),
        (DialCounter::LostFragments, "lost-fragments"),
        (DialCounter::Fragmented, "fragmented"),
        (DialCounter::Clashed, "clashed"),
        (DialCounter::Unfollowed, "unfollowed"),
        (DialCounter::SynCookies, "syn-cookies"),
        (DialCounter::CookiesConfirmed, "cookies-confirmed"),
        (DialCounter::XdpForwarded, "xdp-forwarded"),
    ];
}

/// Size of `dial_stats`.
pub const DIAL_COUNTERS: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_fit_the_counters() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_code(*reason as u16), Some(*reason));
            assert!((*reason as u32) < REASON_CODES);
        }
        assert_eq!(Reason::from_code(0), None, "0 is what an untouched map entry holds");
    }
}
