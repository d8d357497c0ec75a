//! `sluice crds`: the definitions of kinds that come with Sluice, for an API server that does not have them.

/// The manifests of `deploy/crds`.
const DEFINITIONS: [&str; 4] = [
    include_str!("../../../deploy/crds/contour.heptio.com_ingressroutes.yaml"),
    include_str!("../../../deploy/crds/gateway.sluice.dev_routeslots.yaml"),
    include_str!("../../../deploy/crds/operator.openshift.io_ingresscontrollers.yaml"),
    include_str!("../../../deploy/crds/route.openshift.io_routes.yaml"),
];

/// All of them, as documents of one YAML stream.
pub fn text() -> String {
    DEFINITIONS.join("---\n")
}
