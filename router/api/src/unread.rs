//! Advice for objects of unsupported kinds: a supported version, an equivalent kind, or a template to render first.

use router_model::kind::Kind;

/// Kinds with an equivalent: group (any version), kind, what to write.
const INSTEAD: &[(&str, &str, &str)] = &[
    ("", "Endpoints", "write an EndpointSlice of discovery.k8s.io/v1 with the label kubernetes.io/service-name"),
    ("", "Template", "render it first: `oc process --local -f FILE > rendered.yaml`"),
    ("template.openshift.io", "Template", "render it first: `oc process --local -f FILE > rendered.yaml`"),
    ("kustomize.config.k8s.io", "Kustomization", KUSTOMIZE),
    ("kustomize.config.k8s.io", "Component", KUSTOMIZE),
    ("kustomize.toolkit.fluxcd.io", "Kustomization", "render it first: `kubectl kustomize DIR > rendered.yaml`"),
    ("helm.toolkit.fluxcd.io", "HelmRelease", "render its chart first: `helm template CHART > rendered.yaml`"),
    ("networking.k8s.io", "Ingress", INGRESS),
    ("networking.k8s.io", "IngressClass", "Ingresses are not served; write a GatewayClass and a Gateway"),
    ("extensions", "Ingress", INGRESS),
    ("gateway.networking.k8s.io", "ReferencePolicy", "write a ReferenceGrant of gateway.networking.k8s.io/v1"),
    ("gateway.networking.k8s.io", "TCPRoute", "TCP by port is not done; a TLSRoute is carried by its server name"),
    ("gateway.networking.k8s.io", "UDPRoute", "UDP is not done"),
    ("gateway.networking.k8s.io", "ListenerSet", LISTENER_SET),
    ("gateway.networking.x-k8s.io", "XListenerSet", LISTENER_SET),
    ("projectcontour.io", "ExtensionService", "external authorization and rate limits are not done"),
    ("projectcontour.io", "ContourConfiguration", "Sluice is set by flags and IngressControllers"),
    ("projectcontour.io", "ContourDeployment", "Sluice is set by flags and IngressControllers"),
];

const KUSTOMIZE: &str = "render it first: `kubectl kustomize DIR > rendered.yaml`";
const INGRESS: &str = "write a Route, an HTTPRoute or an HTTPProxy";
const LISTENER_SET: &str = "write its listeners into the Gateway";

/// What to write instead of an object of an unsupported kind; `None` if there is no equivalent.
pub fn instead_of(api_version: &str, kind: &str) -> Option<String> {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let listed = INSTEAD.iter().find(|(of, name, _)| *of == group && *name == kind);
    if let Some((.., advice)) = listed {
        return Some((*advice).to_owned());
    }
    let known = Kind::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(kind))?;
    let of_group = |version: &&&str| version.rsplit_once('/').map_or("", |(group, _)| group) == group;
    if known.api_versions().contains(&api_version) {
        return Some(format!("write kind: {known}"));
    }
    // OpenShift 3 had Routes in the core group; Gateway API began in another group.
    let is_earlier = group.is_empty() || group == "networking.x-k8s.io";
    let version =
        known.api_versions().iter().find(of_group).or_else(|| is_earlier.then(|| known.api_versions().first())?)?;
    let spelling = if known.name() == kind { String::new() } else { format!(" and kind: {known}") };
    Some(format!("write apiVersion: {version}{spelling}, and the fields as that version has them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_a_known_kind_is_named() {
        for (api_version, kind, expected) in [
            ("v1", "Route", "write apiVersion: route.openshift.io/v1,"),
            ("gateway.networking.k8s.io/v1alpha2", "HTTPRoute", "write apiVersion: gateway.networking.k8s.io/v1,"),
            ("gateway.networking.k8s.io/v1alpha2", "TLSRoute", "write apiVersion: gateway.networking.k8s.io/v1,"),
            (
                "gateway.networking.k8s.io/v1alpha3",
                "BackendTLSPolicy",
                "write apiVersion: gateway.networking.k8s.io/v1,",
            ),
            ("networking.x-k8s.io/v1alpha1", "HTTPRoute", "write apiVersion: gateway.networking.k8s.io/v1,"),
            ("discovery.k8s.io/v1beta1", "EndpointSlice", "write apiVersion: discovery.k8s.io/v1,"),
            ("projectcontour.io/v1alpha1", "HTTPProxy", "write apiVersion: projectcontour.io/v1,"),
            ("gateway.networking.k8s.io/v1", "HttpRoute", "write kind: HTTPRoute"),
            ("v1", "route", "write apiVersion: route.openshift.io/v1 and kind: Route,"),
            ("v1", "Endpoints", "write an EndpointSlice of discovery.k8s.io/v1"),
            ("networking.k8s.io/v1", "Ingress", "write a Route, an HTTPRoute or an HTTPProxy"),
            ("v1", "Template", "render it first: `oc process"),
            ("kustomize.config.k8s.io/v1beta1", "Kustomization", "render it first: `kubectl kustomize"),
        ] {
            let advice = instead_of(api_version, kind).unwrap_or_default();
            assert!(advice.starts_with(expected), "{api_version} {kind}: {advice}");
        }
    }

    #[test]
    fn kinds_of_other_projects_get_no_advice() {
        for (api_version, kind) in [
            ("apps/v1", "Deployment"),
            ("v1", "Pod"),
            ("traefik.io/v1alpha1", "IngressRoute"),
            ("networking.istio.io/v1", "Gateway"),
            ("serving.knative.dev/v1", "Route"),
            ("serving.knative.dev/v1", "Service"),
        ] {
            assert_eq!(instead_of(api_version, kind), None, "{api_version} {kind}");
        }
    }

    #[test]
    fn what_is_read_is_not_listed() {
        for (group, kind, _) in INSTEAD {
            assert!(!Kind::ALL.iter().any(|known| known.name() == *kind), "{group} {kind}");
        }
    }
}
