//! Why a route is rejected (docs/openshift.md).

use std::fmt;

use router_model::object::ObjectRef;

use crate::status::host_conflict::HostConflict;

/// The rejection of a route by a router.
#[derive(Clone, Debug)]
pub struct Rejection {
    /// `reason` of its Admitted condition.
    pub reason: RejectReason,
    /// `message` of its Admitted condition.
    pub message: String,
    /// The older object that owns the host. For operators only: statuses never name a foreign namespace.
    pub winner: Option<ObjectRef>,
}

/// Why a route is rejected; the condition's reason (docs/openshift.md#reasons).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RejectReason {
    /// The router admits no wildcard routes, or does not serve the host's domain.
    RouteNotAdmitted,
    /// The effective host is empty.
    NoHostValue,
    /// The effective host is not a valid host name.
    InvalidHost,
    /// An older route, or an older object of another kind, has claimed the host.
    HostAlreadyClaimed,
    /// Certificate, key or CA of the route are invalid.
    ExtendedValidationFailed,
    /// `externalCertificate` names a Secret that does not exist.
    ExternalCertificateGetFailed,
    /// `externalCertificate` names a Secret that cannot be used.
    ExternalCertificateValidationFailed,
    /// The manifest is rejected, and there is no accepted version.
    InvalidManifest,
}

impl RejectReason {
    /// The reason as the condition spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            RejectReason::RouteNotAdmitted => "RouteNotAdmitted",
            RejectReason::NoHostValue => "NoHostValue",
            RejectReason::InvalidHost => "InvalidHost",
            RejectReason::HostAlreadyClaimed => "HostAlreadyClaimed",
            RejectReason::ExtendedValidationFailed => "ExtendedValidationFailed",
            RejectReason::ExternalCertificateGetFailed => "ExternalCertificateGetFailed",
            RejectReason::ExternalCertificateValidationFailed => "ExternalCertificateValidationFailed",
            RejectReason::InvalidManifest => "InvalidManifest",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Box<HostConflict>> for Rejection {
    /// The rejection of the conflict's loser.
    fn from(conflict: Box<HostConflict>) -> Self {
        let message = conflict.message(&conflict.loser);
        Rejection { reason: RejectReason::HostAlreadyClaimed, message, winner: Some(conflict.winner) }
    }
}

pub(crate) fn reject(reason: RejectReason, message: impl Into<String>) -> Rejection {
    Rejection { reason, message: message.into(), winner: None }
}
