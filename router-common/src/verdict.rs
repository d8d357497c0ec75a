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
    /// No route has the server name.
    UnknownSni = 19, Pass, "unknown-sni";
    /// The first bytes are no TLS, or no hello that may be routed; the agent answers with the right alert.
    BadHello = 20, Pass, "bad-hello";
    /// The hello is longer than the kernel gathers.
    LargeHello = 21, Pass, "large-hello";

    /// The Host's routes need a request-level proxy: paths, header work, redirects, cookies.
    NeedsProxy = 32, Pass, "needs-proxy";
    /// A request without a Host name.
    NoHost = 33, Pass, "no-host";
    /// The Host is an address.
    HostAddress = 34, Pass, "host-address";
    /// No route has the Host.
    UnknownHost = 35, Pass, "unknown-host";
    /// The first bytes are no HTTP/1 request that may be routed; the agent answers.
    BadHead = 36, Pass, "bad-head";
    /// The head is longer than the kernel gathers.
    LargeHead = 37, Pass, "large-head";
    /// The request target is not in origin form.
    TargetForm = 38, Pass, "target-form";

    /// Data came that does not continue what was seen: reordered, or after a gap.
    OutOfOrder = 48, Pass, "out-of-order";
    /// The handshake was not seen, or was evicted.
    NoHandshake = 49, Pass, "no-handshake";
    /// No room in the map that gathers first flights.
    MapFull = 50, Pass, "map-full";
    /// The packet could not be read (fragments, unusual headers).
    Unreadable = 51, Pass, "unreadable";

    /// The route's allow-list has no entry for the client's address.
    SourceNotAllowed = 64, Drop, "source-not-allowed";
}

/// Size of per-reason counter arrays: above every code. Code 0 counts events that the full ring lost.
pub const REASON_CODES: u32 = 80;

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
