//! The result of parsing a ClientHello, and the errors.

const ALERT_UNEXPECTED_MESSAGE: u8 = 10;
const ALERT_RECORD_OVERFLOW: u8 = 22;
const ALERT_ILLEGAL_PARAMETER: u8 = 47;
const ALERT_DECODE_ERROR: u8 = 50;
const ALERT_PROTOCOL_VERSION: u8 = 70;

/// Why bytes are not a ClientHello that may be routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HelloError {
    /// The first byte is not a TLS record type: clear text, SSLv2, noise.
    NotTls = 1,
    /// A TLS record, but of another type than handshake.
    NotHandshake,
    /// The record's major version is not 3.
    RecordVersion,
    /// A record longer than [`MAX_RECORD`](super::MAX_RECORD).
    RecordOverflow,
    /// A record without content; forbidden for handshakes (RFC 8446 §5.1).
    EmptyRecord,
    /// The first handshake message is not a ClientHello.
    NotClientHello,
    /// Longer than [`MAX_HELLO`](super::MAX_HELLO).
    TooLarge,
    /// A length does not fit the enclosing structure.
    Length,
    /// Two server_name extensions, or two host names in one.
    DuplicateSni,
    /// The host name is invalid.
    BadName,
}

impl HelloError {
    /// The TLS alert that answers it (RFC 8446 §6); `None`: the connection is closed without one.
    pub const fn alert(self) -> Option<u8> {
        match self {
            HelloError::NotTls | HelloError::NotHandshake => None,
            HelloError::RecordVersion => Some(ALERT_PROTOCOL_VERSION),
            HelloError::RecordOverflow => Some(ALERT_RECORD_OVERFLOW),
            HelloError::EmptyRecord | HelloError::NotClientHello => Some(ALERT_UNEXPECTED_MESSAGE),
            HelloError::DuplicateSni => Some(ALERT_ILLEGAL_PARAMETER),
            HelloError::TooLarge | HelloError::Length | HelloError::BadName => Some(ALERT_DECODE_ERROR),
        }
    }
}

/// The server name of a complete ClientHello. The name itself is in the [`HostBuilder`](crate::hostname::HostBuilder)
/// that the parser filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Sni {
    /// No server_name extension, or one with only unknown name types.
    None = 0,
    /// A DNS name.
    Name = 1,
    /// An IP address, which RFC 6066 §3 forbids: treated like no name.
    IpLiteral = 2,
}

/// The offered protocols, as far as they matter here (ALPN, RFC 7301). A bit set, so that it fits a map value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct AlpnSet(pub u8);

impl AlpnSet {
    /// `h2`.
    pub const H2: u8 = 1;
    /// `http/1.1`.
    pub const HTTP11: u8 = 2;
    /// Any other protocol.
    pub const OTHER: u8 = 4;

    /// Whether a protocol of this bit is offered.
    pub const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// Contents of a complete ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// The server name.
    pub sni: Sni,
    /// The offered protocols.
    pub alpn: AlpnSet,
}

/// State of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    Incomplete,
    /// The whole ClientHello was read.
    Complete,
    /// The input cannot be routed.
    Invalid(HelloError),
}

/// Result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloStep {
    /// Bytes consumed, at least one.
    pub consumed: u32,
    /// State after them.
    pub progress: Progress,
}
