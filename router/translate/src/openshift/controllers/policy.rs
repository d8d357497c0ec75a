//! Policy for the traffic of all routes of a router, from its controller and the ConfigMaps that the controller names.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use router_api::kubernetes::config_map::{CLIENT_CA, NOT_FOUND_PAGE, UNAVAILABLE_PAGE};
use router_api::openshift::ingress_controller::IngressController;
use router_api::openshift::ingress_controller::security::ClientTls;
use router_api::openshift::ingress_controller::tuning::{MaxConnections, Tuning};
use router_api::openshift::route::annotations::values::MAX_TIMEOUT;
use router_api::resources::Resources;
use router_common::http::MAX_HEAD;
use router_model::object::ObjectKey;
use router_table::policy::error_page::ErrorPage;
use router_table::policy::tls_profile::ProfileKind;
use router_table::policy::{AccessLogPolicy, ClientAuth, ErrorPages, Limits, RouterPolicy, Timeouts};
use router_table::tls_offer::TlsOffer;
use rustls::RootCertStore;

/// Namespace of the ConfigMaps that IngressControllers name, in OpenShift.
const CONFIG_NAMESPACE: &str = "openshift-config";
/// Size of HAProxy's buffer for headers, and the part that it reserves, in bytes.
const HEADER_BUFFER: u32 = 32_768;
const HEADER_REWRITE: u32 = 8192;

/// A setting of a controller that its router cannot apply.
#[derive(Debug, PartialEq, Eq)]
pub struct UnsupportedSetting {
    /// Reason of the condition.
    pub reason: &'static str,
    /// The fault, the effect, and the fix.
    pub message: String,
    /// True if TLS is refused because of it.
    pub refuses_tls: bool,
}

/// The policy of a controller's router, and the settings that cannot be applied.
pub fn policy(controller: &IngressController, resources: &Resources) -> (RouterPolicy, Vec<UnsupportedSetting>) {
    let mut faults = Vec::new();
    check_profile(controller, &mut faults);
    let http = &controller.http;
    let log = &controller.logging;
    let policy = RouterPolicy {
        timeouts: timeouts(&controller.tuning),
        limits: limits(&controller.tuning, &mut faults),
        tls: controller.tls_profile.clone(),
        client_tls: controller.client_tls.as_ref().map(|tls| Arc::new(client_auth(tls, resources, &mut faults))),
        actions: (!http.actions.is_empty()).then(|| Arc::new(http.actions.clone())),
        unique_id: http.unique_id.clone(),
        case_adjustments: http.case_adjustments.clone().into(),
        pages: http.error_pages.as_ref().map(|name| pages(name, resources, &mut faults)).unwrap_or_default(),
        compress: http.compress.clone().into(),
        ignore_empty_requests: http.ignore_empty_requests,
        defer_idle_termination: http.defer_idle_termination,
        abort_closed_clients: http.abort_closed_clients,
        log: AccessLogPolicy {
            request_headers: log.request_headers.clone().into(),
            response_headers: log.response_headers.clone().into(),
            cookie: log.cookie.clone(),
            ignore_empty: log.ignore_empty,
            syslog: log.syslog,
            format: log.format.clone(),
        },
        path_form: controller.paths.usual(),
        accept_proxy: controller.publishing.proxy_protocol,
        gate: controller.gate.clone(),
    };
    (policy, faults)
}

/// Whether a router uses this ConfigMap.
pub fn uses(key: &ObjectKey, resources: &Resources) -> bool {
    resources.ingress_controllers.iter().any(|controller| config_maps_of(controller).any(|map| map == *key))
}

/// The ConfigMaps that a controller references.
pub fn config_maps_of(controller: &IngressController) -> impl Iterator<Item = ObjectKey> {
    let ca = controller.client_tls.as_ref().map(|tls| &tls.ca);
    let names = [ca, controller.http.error_pages.as_ref()].into_iter().flatten();
    names.map(|name| ObjectKey::new(CONFIG_NAMESPACE, name))
}

fn timeouts(tuning: &Tuning) -> Timeouts {
    let default = Timeouts::default();
    let of = |written: Option<Duration>, default: Duration| written.unwrap_or(default).min(MAX_TIMEOUT);
    Timeouts {
        hello: of(tuning.tls_inspect_delay, default.hello),
        handshake: default.handshake,
        head: default.head,
        keep_alive: of(tuning.keep_alive, default.keep_alive),
        client: of(tuning.client, default.client),
        client_fin: of(tuning.client_fin, default.client_fin),
        connect: of(tuning.connect, default.connect),
        server: of(tuning.server, default.server),
        tunnel: of(tuning.tunnel, default.tunnel),
        health_check: of(tuning.health_check_interval, default.health_check),
    }
}

fn limits(tuning: &Tuning, faults: &mut Vec<UnsupportedSetting>) -> Limits {
    let default = Limits::default();
    let mut head = match (tuning.header_buffer_bytes, tuning.header_buffer_max_rewrite_bytes) {
        (None, None) => default.head,
        (buffer, rewrite) => buffer.unwrap_or(HEADER_BUFFER).saturating_sub(rewrite.unwrap_or(HEADER_REWRITE)),
    };
    if head > MAX_HEAD {
        let message = format!(
            "spec.tuningOptions.headerBufferBytes: less headerBufferMaxRewriteBytes it is {head}, and the head of a \
             request may have {MAX_HEAD} bytes at most; that is the limit"
        );
        faults.push(UnsupportedSetting { reason: "HeaderLimitReduced", message, refuses_tls: false });
        head = MAX_HEAD;
    }
    let connections = match tuning.max_connections {
        None => default.connections,
        Some(MaxConnections::Computed) => None,
        Some(MaxConnections::Fixed(most)) => NonZeroU32::new(most),
    };
    Limits { head, connections }
}

/// Checks the TLS profile. Missing suites of `Intermediate` and `Modern` are not reported, since these only name a
/// recommendation; those of other profiles are.
fn check_profile(controller: &IngressController, faults: &mut Vec<UnsupportedSetting>) {
    let profile = &controller.tls_profile;
    match TlsOffer::of(profile) {
        Err(nothing) => faults.push(UnsupportedSetting {
            reason: "TLSProfileUnusable",
            message: format!("spec.tlsSecurityProfile: {nothing}; until then TLS is refused"),
            refuses_tls: true,
        }),
        Ok(offer) if matches!(profile.kind, ProfileKind::Old | ProfileKind::Custom) && !offer.missing.is_empty() => {
            let message = format!(
                "spec.tlsSecurityProfile: not offered, as they are not safe any more or not in the TLS library: {}",
                offer.missing.join(", ")
            );
            faults.push(UnsupportedSetting { reason: "TLSProfileReduced", message, refuses_tls: false });
        }
        Ok(_) => {}
    }
}

fn client_auth(tls: &ClientTls, resources: &Resources, faults: &mut Vec<UnsupportedSetting>) -> ClientAuth {
    let map = resources.config_maps.get(&ObjectKey::new(CONFIG_NAMESPACE, &tls.ca));
    let found = match map.map(|map| &map.client_ca) {
        None => Err(format!("ConfigMap {:?} of spec.clientTLS.clientCA is not in {CONFIG_NAMESPACE}", tls.ca)),
        Some(None) => Err(format!("ConfigMap {:?} of spec.clientTLS.clientCA has no key {CLIENT_CA}", tls.ca)),
        Some(Some(Err(fault))) => {
            Err(format!("{CLIENT_CA} in ConfigMap {:?} of spec.clientTLS.clientCA {fault}", tls.ca))
        }
        Some(Some(Ok(ca))) => Ok(ca),
    };
    let roots = match found {
        Ok(ca) => {
            if ca.names_revocation_lists {
                let message = "the CA of spec.clientTLS names lists of revoked certificates, which are not fetched: a \
                               revoked certificate is taken until it expires";
                let message = message.to_owned();
                faults.push(UnsupportedSetting { reason: "RevocationNotChecked", message, refuses_tls: false });
            }
            Arc::clone(&ca.roots)
        }
        // If a client certificate is required and cannot be verified, no client is served.
        Err(fault) => {
            let message = format!("{fault}; until it is there TLS is refused");
            faults.push(UnsupportedSetting { reason: "ClientCAUnusable", message, refuses_tls: true });
            Arc::new(RootCertStore::empty())
        }
    };
    ClientAuth { required: tls.required, roots, subjects: tls.subject_patterns.clone() }
}

fn pages(name: &str, resources: &Resources, faults: &mut Vec<UnsupportedSetting>) -> ErrorPages {
    let without = "the router's own pages are sent";
    let mut fault = |message: String| {
        faults.push(UnsupportedSetting {
            reason: "ErrorPagesUnusable",
            message: format!("{message}; {without}"),
            refuses_tls: false,
        });
    };
    let Some(map) = resources.config_maps.get(&ObjectKey::new(CONFIG_NAMESPACE, name)) else {
        fault(format!("ConfigMap {name:?} of spec.httpErrorCodePages is not in {CONFIG_NAMESPACE}"));
        return ErrorPages::default();
    };
    if map.unavailable.is_none() && map.not_found.is_none() {
        fault(format!(
            "ConfigMap {name:?} of spec.httpErrorCodePages has neither {UNAVAILABLE_PAGE} nor {NOT_FOUND_PAGE}"
        ));
    }
    let mut page = |key: &str, page: &Option<Result<Arc<ErrorPage>, String>>| match page {
        Some(Ok(page)) => Some(Arc::clone(page)),
        Some(Err(problem)) => {
            fault(format!("{key} in ConfigMap {name:?} of spec.httpErrorCodePages {problem}"));
            None
        }
        None => None,
    };
    ErrorPages {
        unavailable: page(UNAVAILABLE_PAGE, &map.unavailable),
        not_found: page(NOT_FOUND_PAGE, &map.not_found),
    }
}
