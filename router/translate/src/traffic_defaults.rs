//! Defaults of a router for the traffic of its routes.

use std::time::Duration;

use router_api::openshift::ingress_controller::IngressController;
use router_api::openshift::route::annotations::values::MAX_TIMEOUT;
use router_table::path_form::PathSettings;
use router_table::policy::forwarded::ForwardedHeaders;

/// Defaults of a router for the traffic of its routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficDefaults {
    /// `httpHeaders.forwardedHeaderPolicy`.
    pub forwarded: ForwardedHeaders,
    /// `tuningOptions.tunnelTimeout`, at most [`MAX_TIMEOUT`].
    pub tunnel_timeout: Option<Duration>,
    /// True if a setting requires parsing every request.
    pub request_work: bool,
    /// How request paths are compared and forwarded.
    pub paths: PathSettings,
}

impl TrafficDefaults {
    /// Defaults of an IngressController. If clients present certificates, backends may trust `X-SSL…` fields, so those
    /// that clients send must be removed from every request.
    pub fn of(controller: &IngressController) -> Self {
        let (http, log) = (&controller.http, &controller.logging);
        let changes_headers = !http.actions.is_empty()
            || http.unique_id.is_some()
            || !http.case_adjustments.is_empty()
            || controller.client_tls.is_some();
        let captures = !log.request_headers.is_empty() || !log.response_headers.is_empty() || log.cookie.is_some();
        TrafficDefaults {
            forwarded: http.forwarded,
            tunnel_timeout: controller.tuning.tunnel.map(|timeout| timeout.min(MAX_TIMEOUT)),
            request_work: changes_headers
                || captures
                || !http.compress.is_empty()
                || controller.tuning.server.is_some()
                || controller.paths.normalise,
            paths: controller.paths,
        }
    }
}
