//! TLS of a virtual host, and permission to use a Secret (docs/delegation.md#s5).

use std::sync::Arc;

use router_api::contour::types::{ContourProxy, TlsSpec, Violation};
use router_api::kubernetes::secret::Secret;
use router_api::resources::Resources;
use router_model::certificate::Certificate;
use router_model::kind::Kind;
use router_model::object::ObjectKey;
use router_table::policy::tls_profile::TlsVersion;

/// TLS of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostTls {
    /// Clear text only.
    None,
    /// Terminated here.
    Terminate {
        /// The certificate to present.
        certificate: Certificate,
        /// Its Secret; only its owner may learn the name.
        secret: ObjectKey,
        /// Minimum version.
        minimum: TlsVersion,
    },
    /// Passed through.
    Passthrough {
        /// Minimum version that the domain requires from objects that terminate TLS.
        minimum: TlsVersion,
    },
}

impl HostTls {
    /// Raises the minimum version to that of the enclosing domain.
    pub fn at_least(mut self, domain: &HostTls) -> Self {
        let floor = match domain {
            HostTls::None => return self,
            HostTls::Terminate { minimum, .. } | HostTls::Passthrough { minimum } => *minimum,
        };
        match &mut self {
            HostTls::None => {}
            HostTls::Terminate { minimum, .. } | HostTls::Passthrough { minimum } => *minimum = floor.max(*minimum),
        }
        self
    }
}

fn fault(reason: &'static str, message: String) -> Violation {
    Violation::new("TLSError", reason, message)
}

/// The TLS that an object defines itself.
///
/// # Errors
/// The fields are invalid, or the Secret is missing, invalid or not delegated.
pub fn own(proxy: &ContourProxy, tls: &TlsSpec, resources: &Resources) -> Result<HostTls, Violation> {
    let is_proxy = proxy.kind == Kind::HttpProxy;
    let minimum = minimum(proxy.kind, &tls.minimum);
    let secret = &tls.secret;
    if tls.passthrough && !secret.is_empty() {
        let message = "Spec.VirtualHost.TLS: both Passthrough and SecretName were specified".to_owned();
        return Err(fault("TLSConfigNotValid", message));
    }
    if tls.passthrough {
        return Ok(HostTls::Passthrough { minimum });
    }
    if is_proxy && secret.is_empty() {
        let message = "Spec.VirtualHost.TLS: neither Passthrough nor SecretName were specified".to_owned();
        return Err(fault("TLSConfigNotValid", message));
    }
    match secret_for(secret, &proxy.meta.key.namespace, resources) {
        Ok((key, Some(found))) if found.pair.is_some() => {
            let Some(certificate) = found.pair.clone() else { return Ok(HostTls::None) };
            Ok(HostTls::Terminate { certificate, secret: key, minimum })
        }
        Ok(_) if is_proxy => {
            let message = format!("Spec.VirtualHost.TLS Secret {secret:?} is invalid: not found or is malformed");
            Err(fault("SecretNotValid", message))
        }
        Ok(_) => Err(fault("SecretNotValid", format!("TLS Secret [{secret}] not found or is malformed"))),
        Err(NotPermitted) if is_proxy => {
            let message = format!("Spec.VirtualHost.TLS Secret {secret:?} certificate delegation not permitted");
            Err(fault("DelegationNotPermitted", message))
        }
        Err(NotPermitted) => {
            Err(fault("DelegationNotPermitted", format!("{secret}: certificate delegation not permitted")))
        }
    }
}

/// A Secret of another namespace is not delegated. The message must not reveal whether it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPermitted;

/// The key of the Secret that an object refers to by name or `namespace/name`, and the Secret if it exists.
///
/// # Errors
/// The Secret is in another namespace, and no TLSCertificateDelegation covers `namespace`.
pub fn secret_for<'r>(
    written: &str,
    namespace: &Arc<str>,
    resources: &'r Resources,
) -> Result<(ObjectKey, Option<&'r Arc<Secret>>), NotPermitted> {
    let key = match written.split_once('/') {
        Some((namespace, name)) => ObjectKey::new(namespace, name),
        None => ObjectKey { namespace: Arc::clone(namespace), name: written.into() },
    };
    if !is_delegated(&key, namespace, resources) {
        return Err(NotPermitted);
    }
    let secret = resources.secrets.get(&key);
    Ok((key, secret))
}

/// True if objects of a namespace may use a Secret.
fn is_delegated(secret: &ObjectKey, namespace: &str, resources: &Resources) -> bool {
    *secret.namespace == *namespace
        || resources
            .certificate_delegations
            .of_namespace(&secret.namespace)
            .flat_map(|object| &object.delegations)
            .filter(|(name, _)| *name == secret.name)
            .any(|(_, targets)| targets.iter().any(|target| **target == *"*" || **target == *namespace))
}

/// `minimumProtocolVersion`; each API has its own default for unknown values.
fn minimum(kind: Kind, written: &str) -> TlsVersion {
    match written {
        "1.3" => TlsVersion::Tls13,
        "1.2" => TlsVersion::Tls12,
        _ if kind == Kind::HttpProxy => TlsVersion::Tls12,
        _ => TlsVersion::Tls11,
    }
}
