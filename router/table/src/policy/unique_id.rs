//! A header that identifies each request (OpenShift: `httpHeaders.uniqueId`).

use std::sync::Arc;

/// A header that identifies each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueId {
    /// Header name.
    pub name: Arc<str>,
    /// What its value is made of, in order.
    pub parts: Arc<[UniqueIdPart]>,
}

/// A part of the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UniqueIdPart {
    /// Stands as it is.
    Text(Arc<str>),
    /// Computed for each request.
    Field {
        /// What.
        what: UniqueIdField,
        /// `+X`: an address as its bytes, 2 upper-case digits each; a number in upper case, at least 4 digits.
        hex: bool,
    },
}

/// What is known of a request that has not been answered.
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
    /// `%rt`: a number that grows with each request of the process.
    Counter,
    /// `%pid`: the process id.
    Process,
    /// `%[uuid]`, `%[uuid()]` and `%[uuid(4)]`: a random UUID (RFC 9562, 5.4); never hexadecimal.
    Uuid,
}
