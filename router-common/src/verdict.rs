//! What is decided about a connection, and every reason for it: one list for the kernel, the agent and the log.

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verdict {
    /// The connection goes to an endpoint of its route as it is; the kernel may do that alone.
    Steer = 1,
    /// The agent takes it: terminates, relays or answers.
    Pass = 2,
    /// It is refused: both sides get a reset.
    Drop = 3,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $verdict:ident, $text:literal;)*) => {
        /// Why a verdict was given. The code is what maps and events hold.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Reason {
            $($(#[$doc])* $name = $code,)*
        }

        impl Reason {
            /// All reasons, by code.
            pub const ALL: &[Reason] = &[$(Reason::$name,)*];

            /// The verdict that this is a reason for. One exhaustive match: a reason cannot be without a verdict.
            #[inline(always)]
            pub const fn verdict(self) -> Verdict {
                match self {
                    $(Reason::$name => Verdict::$verdict,)*
                }
            }

            /// The reason as logs, metrics and `sluice` print it.
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
    /// The Host belongs to one clear-text route that needs no request-level proxy.
    Cleartext = 2, Steer, "cleartext";

    /// The SNI belongs to edge or re-encrypt routes.
    TlsTerminate = 16, Pass, "tls-terminate";
    /// A complete hello without a server name.
    NoSni = 17, Pass, "no-sni";
    /// The server name is an address.
    SniAddress = 18, Pass, "sni-address";
    /// No route has the server name, or one whose host is wider than a wildcard of one label: the agent knows.
    UnknownSni = 19, Pass, "unknown-sni";
    /// The first bytes are no TLS, or no hello that may be routed; the agent answers with the right alert.
    BadHello = 20, Pass, "bad-hello";
    /// The hello is longer than the kernel gathers.
    LargeHello = 21, Pass, "large-hello";
    /// The passthrough route asks for what the kernel does not count or choose: limits for each client or endpoint,
    /// balance by source or by connections.
    NeedsRelay = 22, Pass, "needs-relay";

    /// The Host's routes need a request-level proxy: paths, header work, redirects, cookies.
    NeedsProxy = 32, Pass, "needs-proxy";
    /// A request without a Host name.
    NoHost = 33, Pass, "no-host";
    /// The Host is an address.
    HostAddress = 34, Pass, "host-address";
    /// No route has the Host, or one whose host is wider than a wildcard of one label.
    UnknownHost = 35, Pass, "unknown-host";
    /// The first bytes are no HTTP/1 request that may be routed; the agent answers.
    BadHead = 36, Pass, "bad-head";
    /// The head is longer than the kernel gathers.
    LargeHead = 37, Pass, "large-head";
    /// The request target is not in origin form.
    TargetForm = 38, Pass, "target-form";
    /// Something follows the first head at once: content or another request, perhaps for another host. The proxy tells
    /// them apart.
    MoreThanHead = 39, Pass, "more-than-head";
    /// The head does not tell in exactly one way where its content ends, or whether it comes. The proxy decides.
    UnclearContent = 40, Pass, "unclear-content";

    /// Data came that does not continue what was seen: reordered, or after a gap.
    OutOfOrder = 48, Pass, "out-of-order";
    /// The handshake was not seen, or was evicted.
    NoHandshake = 49, Pass, "no-handshake";
    /// No room in the map that gathers first flights.
    MapFull = 50, Pass, "map-full";
    /// The packet could not be read (fragments, unusual headers).
    Unreadable = 51, Pass, "unreadable";

    /// The route has no endpoint that the kernel can dial.
    NoEndpoint = 52, Pass, "no-endpoint";
    /// Every source port that was tried is in use.
    PortsTaken = 53, Pass, "ports-taken";
    /// Answers to the client leave by another interface than it came in by, or are encapsulated on their way.
    OtherWayBack = 55, Pass, "other-way-back";
    /// The client's packets come in fragments, and those of another connection could not be carried.
    Fragments = 56, Pass, "fragments";
    /// No room in the map of flows.
    FlowsFull = 54, Pass, "flows-full";

    /// The route's allow-list has no entry for the client's address.
    SourceNotAllowed = 64, Drop, "source-not-allowed";
}

/// Size of per-reason counter arrays: above every code. Code 0 counts events that the full ring lost.
pub const REASON_CODES: u32 = 80;

/// Why a connection that the kernel carried ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlowEndReason {
    /// Both sides sent a FIN, and both were acknowledged.
    Finished = 1,
    /// The client reset it.
    ClientReset = 2,
    /// The endpoint reset it.
    BackendReset = 3,
    /// Every endpoint that was tried refused.
    Refused = 4,
    /// The client began a new connection from the same address and port.
    Replaced = 5,
    /// Nothing moved for the tunnel timeout; the agent deleted it.
    Idle = 6,
    /// No endpoint answered; the agent deleted it.
    Silent = 7,
    /// A later request of a clear-text connection had another Host.
    OtherHost = 8,
    /// Its packets came in fragments that could not be carried; the agent reset it.
    Fragmented = 9,
    /// What the client of a clear-text connection sent where a request stands can be none, or cannot be followed.
    Unfollowed = 10,
    /// A rule or policy of the host that came later does not let its packets pass; the agent deleted it.
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

    /// The reason as logs and `sluice` print it.
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

/// What the programs count of dials and flows; indexes of `dial_stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DialCounter {
    /// Ends that nobody tells of: the ring was full still when their entries were needed.
    EndsLost = 0,
    /// Connections dialed.
    Dialed = 1,
    /// Connections whose first payload an endpoint has acknowledged.
    Confirmed = 2,
    /// SYNs sent again.
    SynAgain = 3,
    /// First payloads sent again.
    PayloadAgain = 4,
    /// Dials that went on to another endpoint.
    NextEndpoint = 5,
    /// Answers to a SYN that belong to another connection of the endpoint: the dial takes another port.
    Challenged = 6,
    /// Entries of ended connections whose ports were taken over.
    TakenOver = 7,
    /// Connections whose every endpoint refused.
    Refused = 8,
    /// Packets of the stack that were dropped because the kernel carries the connection.
    StackSilenced = 9,
    /// Packets that could not be translated and were dropped.
    Untranslated = 10,
    /// Later requests of clear-text connections with another Host.
    OtherHost = 11,
    /// Ends that found the ring full. The agent's sweep tells of them, unless their entries are needed before.
    EndsLate = 12,
    /// Packets of carried connections with IP options or extension headers that no host takes, such as source routes. They
    /// were dropped.
    RefusedHeaders = 13,
    /// Fragments of packets of carried connections that could not be carried, and were dropped.
    LostFragments = 14,
    /// Connections that were given up for that.
    Fragmented = 15,
    /// SYNs of others that were dropped because the kernel carries a connection with their addresses and ports.
    Clashed = 16,
    /// Clear-text connections that were reset because what their client sent cannot be followed.
    Unfollowed = 17,
}

impl DialCounter {
    /// All counters with their names, by index.
    pub const ALL: [(DialCounter, &'static str); 18] = [
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
