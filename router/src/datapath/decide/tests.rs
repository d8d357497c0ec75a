//! The kernel's tables and the proxy's look-ups are made from one routing table, and lead to the same routes.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use router_common::maps::PROTOCOL_HTTP;
use router_common::verdict::{Reason, Verdict};
use router_core::certificate::MaterialCache;
use router_core::lookup::{RequestMatch, SniMatch};
use router_core::model::Hostname;
use router_core::object::Origin;
use router_core::parse::{Defaults, Outcome, parse};
use router_core::resources::Resources;
use router_core::table::{ResolvedRoute, RouterTable};
use router_core::translate::{Settings, translate};
use serde_json::{Value, json};

use super::*;
use crate::datapath::image::{RouteIds, lower};
use crate::datapath::pools::Pools;

const HOSTS: [&str; 6] = ["a.x.test", "b.x.test", "x.test", "a.y.test", "deep.a.x.test", "localhost"];

fn routes() -> impl Strategy<Value = Value> {
    let tls = prop_oneof![
        Just(json!(null)),
        Just(json!({"termination": "edge"})),
        Just(json!({"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"})),
        Just(json!({"termination": "passthrough"})),
        Just(json!({"termination": "passthrough", "insecureEdgeTerminationPolicy": "Redirect"})),
    ];
    (0..9u32, 0..HOSTS.len(), tls, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(name, host, tls, wildcard, path, list)| {
            let passthrough = tls["termination"] == "passthrough";
            let mut spec = json!({"host": HOSTS[host], "to": {"name": "web"}});
            if !tls.is_null() {
                spec["tls"] = tls;
            }
            if wildcard {
                spec["wildcardPolicy"] = json!("Subdomain");
            }
            if path && !passthrough {
                spec["path"] = json!("/p");
            }
            let annotations =
                if list { json!({"haproxy.router.openshift.io/ip_allowlist": "10.0.0.0/8"}) } else { json!({}) };
            json!({"apiVersion": "route.openshift.io/v1", "kind": "Route", "spec": spec,
                "metadata": {"namespace": "ns", "name": format!("r{name}"), "uid": format!("{name}"),
                    "annotations": annotations}})
        },
    )
}

fn table(routes: Vec<Value>) -> Arc<RouterTable> {
    let controller = json!({"apiVersion": "operator.openshift.io/v1", "kind": "IngressController",
        "metadata": {"namespace": "openshift-ingress-operator", "name": "default"},
        "spec": {"routeAdmission": {"wildcardPolicy": "WildcardsAllowed"}}});
    let mut resources = Resources::default();
    for value in routes.into_iter().chain([controller]) {
        if let Outcome::Good(object) =
            parse(value, Origin::default(), &Defaults::default(), &mut MaterialCache::new()).outcome
        {
            resources.insert(&object);
        }
    }
    Arc::clone(&translate(&resources, &Settings::default()).table.routers[0])
}

proptest! {
    #[test]
    fn kernel_and_proxy_lead_to_the_same_route(routes in vec(routes(), 0..12)) {
        let router = table(routes);
        let whole = router_core::table::RoutingTable { revision: 1, routers: vec![Arc::clone(&router)] };
        let mut ids = RouteIds::default();
        ids.assign(&whole);
        let mut pools = Pools::new(|_: IpAddr| None);
        let image = lower(&whole, &[], &[], &ids, &mut pools);
        let id = |route: &ResolvedRoute| ids.of(router.id, &route.id);
        let names: BTreeSet<&str> = HOSTS.into_iter().chain(["other.x.test", "unknown.test", "c.deep.a.x.test"]).collect();
        for client in ["10.1.2.3", "192.0.2.1"].map(|a| a.parse::<IpAddr>().unwrap()) {
            for name in &names {
                let host = Hostname::parse(name).unwrap();
                let decision = image.decide_name(router.id, PROTOCOL_TLS, client, name);
                match router.match_sni(Some(&host)) {
                    SniMatch::Passthrough(route) => {
                        let admitted = route.admits_source(client);
                        let reason = if admitted { Reason::Passthrough } else { Reason::SourceNotAllowed };
                        prop_assert_eq!((decision.reason, decision.route), (reason, id(route)), "{}", name);
                    }
                    SniMatch::Terminate(_) => prop_assert_eq!(decision.reason, Reason::TlsTerminate, "{}", name),
                    SniMatch::Default => prop_assert_eq!(decision.reason, Reason::UnknownSni, "{}", name),
                }
                let decision = image.decide_name(router.id, PROTOCOL_HTTP, client, name);
                // Requests need the proxy; the kernel only has to know whose they may be.
                prop_assert_eq!(decision.verdict(), Verdict::Pass);
                if !matches!(router.match_cleartext_request(&host, "/p"), RequestMatch::NoRoute) {
                    prop_assert_eq!(decision.reason, Reason::NeedsProxy, "{}", name);
                }
            }
        }
    }
}
