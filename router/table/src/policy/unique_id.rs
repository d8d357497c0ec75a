//! A header that identifies each request (OpenShift: `httpHeaders.uniqueId`).

use std::sync::Arc;

/// A header that identifies each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueId {
    /// Header name.
    pub name: Arc<str>,
    /// The parts of its value, in order.
    pub parts: Arc<[UniqueIdPart]>,
}

/// A part of the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UniqueIdPart {
    /// Literal text.
    Text(Arc<str>),
    /// Computed for each request.
    Field {
        /// The field.
        what: UniqueIdField,
        /// `+X`: an address as its bytes, two upper-case hexadecimal digits each; a number in upper-case hexadecimal,
        /// at least four digits.
        hex: bool,
    },
}

/// Values of a request before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniqueIdField {
    /// `%ci`: the client's address.
    ClientAddress,
    /// `%cp`: the client's port.
    ClientPort,
    /// `%fi`: the address that the client connected to.
    FrontendAddress,
    /// `%fp`: the port that the client connected to.
    FrontendPort,
    /// `%Ts`: seconds since 1970.
    Timestamp,
    /// `%ms`: milliseconds of that second, 3 digits; never hexadecimal.
    Milliseconds,
    /// `%rt`: a counter of the process's requests.
    Counter,
    /// `%pid`: the process id.
    Process,
    /// `%[uuid]`, `%[uuid()]` and `%[uuid(4)]`: a random UUID (RFC 9562, 5.4); never hexadecimal.
    Uuid,
}
