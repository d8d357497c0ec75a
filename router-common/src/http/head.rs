//! The result of parsing a request head, and the errors.

/// Why bytes are not a request head that may be routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HeadError {
    /// The first bytes are not a method: TLS, noise.
    NotHttp = 1,
    /// The method is not a token, or more than one space follows it.
    Method,
    /// The request target has a forbidden byte or an unknown form.
    Target,
    /// The version is not HTTP/1.0 or HTTP/1.1.
    Version,
    /// A line ends with a bare LF, or has a CR inside.
    LineEnd,
    /// A header line without a valid name and a colon.
    HeaderName,
    /// A control character in a value.
    HeaderValue,
    /// A continuation line (`obs-fold`, RFC 9112 §5.2).
    Fold,
    /// No Host field in an HTTP/1.1 request.
    NoHost,
    /// Two Host fields (RFC 9112 §3.2).
    DuplicateHost,
    /// The Host field is not a valid host.
    BadHost,
    /// Longer than [`MAX_HEAD`](super::MAX_HEAD).
    TooLarge,
}

impl HeadError {
    /// Status code of the response (RFC 9110 §15.5); `None`: the connection is closed without one, because it is not
    /// HTTP.
    pub const fn status(self) -> Option<u16> {
        match self {
            HeadError::NotHttp => None,
            HeadError::Version => Some(505),
            HeadError::TooLarge => Some(431),
            _ => Some(400),
        }
    }
}

/// Form of the request target (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TargetForm {
    /// `/path?query`.
    Origin = 0,
    /// `http://host/path`: its authority takes precedence over the Host field, so the proxy decides.
    Absolute = 1,
    /// `host:port` of CONNECT.
    Authority = 2,
    /// `*` of OPTIONS.
    Asterisk = 3,
}

/// Contents of a complete head. Offsets count from the first byte of the connection's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Offset of the method (after empty lines before the request line).
    pub method_start: u32,
    /// Bytes of the method.
    pub method_len: u16,
    /// Offset of the request target.
    pub target_start: u32,
    /// Bytes of the request target.
    pub target_len: u16,
    /// Form of the request target.
    pub form: TargetForm,
    /// Whether the Host field holds a name that can be looked up.
    pub host: HeadHost,
    /// Whether the version is HTTP/1.1 instead of 1.0.
    pub http11: bool,
    /// Bytes of the head, the empty line included.
    pub len: u32,
    /// How the end of its content is determined.
    pub framing: Framing,
    /// Bytes of content, when [`Framing::Sized`].
    pub length: u64,
    /// The protocol that it asks for.
    pub upgrade: UpgradeProtocol,
}

/// How the end of a request's content is determined (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Framing {
    /// By its length, which is 0 without Content-Length.
    Sized = 0,
    /// By its last chunk.
    Chunked = 1,
    /// Two readers may find different ends: fields that contradict each other, are repeated, or are spelled in a way
    /// that only some readers accept; content that servers may not read.
    Unclear = 2,
}

/// The protocol that a request asks its connection to switch to (RFC 9110 §7.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum UpgradeProtocol {
    /// None.
    No = 0,
    /// HTTP/2 alone, as some clients do with every request.
    H2c = 1,
    /// Another protocol.
    Other = 2,
}

/// The Host field of a complete head. The name itself is in the [`HostBuilder`](crate::hostname::HostBuilder) that the
/// parser filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HeadHost {
    /// Absent (HTTP/1.0 only) or empty.
    None = 0,
    /// A DNS name.
    Name = 1,
    /// An IP address.
    IpLiteral = 2,
}

/// State of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    Incomplete,
    /// The whole head was read.
    Complete,
    /// The head cannot be routed.
    Invalid(HeadError),
}
