//! What a request head says, and why bytes are none.

/// Why bytes are not a request head that may be routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HeadError {
    /// The first bytes are no method: TLS, noise.
    NotHttp = 1,
    /// The method is no token, or is followed by more than one space.
    Method,
    /// The request target has a forbidden byte, or no known form.
    Target,
    /// The version is not HTTP/1.0 or HTTP/1.1.
    Version,
    /// A line ends with a bare LF, or has a CR inside.
    LineEnd,
    /// A header line without a proper name and colon.
    HeaderName,
    /// A control character in a value.
    HeaderValue,
    /// A continuation line (`obs-fold`, RFC 9112 §5.2).
    Fold,
    /// No Host field in an HTTP/1.1 request.
    NoHost,
    /// Two Host fields (RFC 9112 §3.2).
    DuplicateHost,
    /// The Host field is no host.
    BadHost,
    /// Longer than [`MAX_HEAD`](super::MAX_HEAD).
    TooLarge,
}

impl HeadError {
    /// The status code that answers it (RFC 9110 §15.5); `None`: close without a word, it is not HTTP.
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
    /// `http://host/path`: its authority beats the Host field, so the proxy decides.
    Absolute = 1,
    /// `host:port` of CONNECT.
    Authority = 2,
    /// `*` of OPTIONS.
    Asterisk = 3,
}

/// What a complete head says. Offsets count from the first byte of the connection's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// First byte of the method (after empty lines that precede the request line).
    pub method_start: u32,
    /// Bytes of the method.
    pub method_len: u16,
    /// First byte of the request target.
    pub target_start: u32,
    /// Bytes of the request target.
    pub target_len: u16,
    /// Form of the request target.
    pub form: TargetForm,
    /// Whether the Host field holds a name that can be looked up.
    pub host: HeadHost,
    /// HTTP/1.1, not 1.0.
    pub http11: bool,
    /// Bytes of the head, the empty line included.
    pub len: u32,
    /// Where its content ends.
    pub framing: Framing,
    /// Bytes of content, when [`Framing::Sized`].
    pub length: u64,
    /// Whether it asks for another protocol.
    pub upgrade: Upgrade,
}

/// What tells where a request's content ends (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Framing {
    /// Its length, which is 0 where no field tells one.
    Sized = 0,
    /// The last of its chunks.
    Chunked = 1,
    /// Two readers may find two ends: fields that contradict each other, are there twice, or are spelled in a way that some
    /// read and others do not; content where servers may not read it.
    Unclear = 2,
}

/// Whether a request asks for another protocol on its connection (RFC 9110 §7.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Upgrade {
    /// It does not.
    No = 0,
    /// For HTTP/2 and nothing else, as some clients do with every request.
    H2c = 1,
    /// For another one.
    Other = 2,
}

/// The Host field of a complete head. The name itself is in the [`HostBuilder`](crate::hostname::HostBuilder) that was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HeadHost {
    /// Absent (HTTP/1.0 only) or empty.
    None = 0,
    /// A DNS name.
    Name = 1,
    /// An address.
    IpLiteral = 2,
}

/// How far a parser has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    Incomplete,
    /// The whole head was read.
    Complete,
    /// It can never be routed.
    Invalid(HeadError),
}
