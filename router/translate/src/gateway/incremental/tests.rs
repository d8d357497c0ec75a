//! After each step of a random history, claims, hosts and statuses equal those of a full translation.

mod random_objects;

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use router_api::resources::Resources;
use router_api::testing::{config_map, good, service};
use router_model::object::{Created, ObjectKey, ObjectRef};
use router_table::table::VirtualHost;
use serde_json::{Value, json};

use self::random_objects::{Edit, base, edits, named, put, secret};
use super::*;
use crate::endpoints::EndpointIndex;
use crate::settings::Settings;
use crate::status::host_conflict::HostOwner;
use crate::status::object_status::ObjectStatus;
use crate::traffic_defaults::TrafficDefaults;
use crate::translator::RouterPorts;

/// Results of a translation.
#[derive(Debug, Default)]
struct Outcome {
    claims: BTreeMap<RouterHost, Arc<HostClaim>>,
    hosts: BTreeMap<RouterHost, VirtualHost>,
    statuses: BTreeMap<ObjectRef, ObjectStatus>,
    routers: Vec<RouterPorts>,
}

/// An incremental translation with its accumulated results.
#[derive(Default)]
struct IncrementalRun {
    incremental: Incremental,
    outcome: Outcome,
    resources: Resources,
    routers: Vec<RouterPorts>,
    lost: LostHosts,
    /// How many hosts and statuses the last step returned.
    visited: (usize, usize),
}

/// Every `.0`th claim, starting at `.1`, is lost to another API; none if `.0` is 0.
type LossPattern = (usize, usize);

fn put_all<K: Ord, V>(into: &mut BTreeMap<K, V>, changes: impl IntoIterator<Item = (K, Option<V>)>) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(into.insert(key, value)),
            None => drop(into.remove(&key)),
        }
    }
}

fn lost_hosts((each, from): LossPattern, claims: &BTreeMap<RouterHost, Arc<HostClaim>>) -> LostHosts {
    let owner = ObjectRef { kind: router_model::kind::Kind::Route, key: ObjectKey::new("red", "winner") };
    let owner = HostOwner { object: owner, created: Created::default() };
    let lost = claims.keys().enumerate().filter(|(i, _)| each > 0 && i % each == from % each);
    lost.map(|(_, at)| (at.clone(), owner.clone())).collect()
}

impl IncrementalRun {
    /// Applies these objects incrementally, and returns the results of a full translation.
    fn step(
        &mut self,
        resources: &Resources,
        routers: &[RouterPorts],
        each: LossPattern,
        settings: &Settings,
    ) -> Outcome {
        let endpoints = EndpointIndex::new(resources, settings.endpoint_addresses);
        let inputs = Inputs { resources, settings, endpoints: &endpoints, routers, addresses: &settings.addresses };
        let slices = resources.endpoint_slices.changes_since(&self.resources.endpoint_slices);
        let slices = slices.flat_map(|changed| changed.old.into_iter().chain(changed.new));
        let slices = slices.filter_map(|versions| versions.accepted.as_ref());
        let protocols: BTreeSet<ObjectKey> = slices
            .filter_map(|slice| {
                let namespace = slice.meta.key.namespace.clone();
                Some(ObjectKey { namespace, name: slice.service.clone()? })
            })
            .collect();
        let changes = Changes { last: &self.resources, last_routers: &self.routers, protocols: &protocols };
        let claims = self.incremental.claims(&inputs, &changes);
        put_all(&mut self.outcome.claims, claims);

        let lost = lost_hosts(each, &self.outcome.claims);
        let all: BTreeSet<&RouterHost> = lost.keys().chain(self.lost.keys()).collect();
        let changed = all.into_iter().filter(|at| lost.get(*at) != self.lost.get(*at)).cloned();
        let changed: Vec<RouterHost> = changed.collect();
        let delta = self.incremental.translate(&inputs, &lost, &changed);
        self.visited = (delta.hosts.len(), delta.statuses.len());
        let removed = delta.hosts.iter().filter(|(_, host)| host.is_none());
        removed.for_each(|(at, _)| assert!(self.outcome.hosts.contains_key(at), "{at:?} was not served"));
        put_all(&mut self.outcome.hosts, delta.hosts);
        put_all(&mut self.outcome.statuses, delta.statuses);
        self.outcome.routers = delta.routers.unwrap_or_else(|| std::mem::take(&mut self.outcome.routers));

        let outcome = fresh(&inputs, each);
        (self.resources, self.routers, self.lost) = (resources.clone(), routers.to_vec(), lost);
        outcome
    }
}

/// Results of a full translation.
fn fresh(inputs: &Inputs<'_>, each: LossPattern) -> Outcome {
    let (mut incremental, mut outcome) = (Incremental::default(), Outcome::default());
    let (nothing, none) = (Resources::default(), BTreeSet::new());
    let changes = Changes { last: &nothing, last_routers: &[], protocols: &none };
    put_all(&mut outcome.claims, incremental.claims(inputs, &changes));
    let lost = lost_hosts(each, &outcome.claims);
    let changed: Vec<RouterHost> = lost.keys().cloned().collect();
    let delta = incremental.translate(inputs, &lost, &changed);
    put_all(&mut outcome.hosts, delta.hosts);
    put_all(&mut outcome.statuses, delta.statuses);
    outcome.routers = delta.routers.unwrap_or_default();
    outcome
}

/// Describes the first difference of two maps.
fn difference<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    found: &BTreeMap<K, V>,
    expected: &BTreeMap<K, V>,
) -> Option<String> {
    let keys: BTreeSet<&K> = found.keys().chain(expected.keys()).collect();
    let key = keys.into_iter().find(|key| found.get(*key) != expected.get(*key))?;
    Some(format!("{key:?}:\n  found {:?}\n  expected {:?}", found.get(key), expected.get(key)))
}

fn routers(tls: bool) -> Vec<RouterPorts> {
    let ports = |name: &str, http, https| RouterPorts {
        name: router_model::names::RouterName(name.into()),
        http,
        https,
        traffic: TrafficDefaults::default(),
        tls_fault: None,
    };
    vec![ports("default", Some(80), tls.then_some(443))]
}

fn check(history: &[(Edit, LossPattern)], settings: &Settings) -> Result<(), TestCaseError> {
    let mut run = IncrementalRun::default();
    let mut resources = base();
    let mut tls = true;
    for (i, (edit, pattern)) in history.iter().enumerate() {
        match edit {
            Edit::Routers => tls = !tls,
            _ => put(&mut resources, edit),
        }
        let fresh = run.step(&resources, &routers(tls), *pattern, settings);
        let found = &run.outcome;
        let differs = difference(&found.claims, &fresh.claims).map(|it| format!("claim {it}"));
        let differs = differs.or_else(|| Some(format!("host {}", difference(&found.hosts, &fresh.hosts)?)));
        let differs = differs.or_else(|| Some(format!("status {}", difference(&found.statuses, &fresh.statuses)?)));
        prop_assert!(differs.is_none(), "after step {i}, {edit:?}: {}", differs.unwrap_or_default());
        prop_assert_eq!(&found.routers, &fresh.routers);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn results_do_not_depend_on_history(history in vec((edits(), (0..4usize, 0..3usize)), 1..30)) {
        check(&history, &Settings::default())?;
    }

    #[test]
    fn results_do_not_depend_on_history_with_domain_lists(history in vec((edits(), (0..4usize, 0..3usize)), 1..30)) {
        let mut settings = Settings::default();
        settings.domains.allowed = vec!["a.x.test".to_owned(), "y.test".to_owned()];
        settings.domains.denied = vec!["deep.a.x.test".to_owned()];
        check(&history, &settings)?;
    }
}

/// Two listeners and 20 HTTPRoutes, each with a host and a Service of its own; the first ones in another namespace.
fn shop() -> Resources {
    let mut resources = base();
    let all = json!({ "namespaces": { "from": "All" } });
    let tls = json!({ "certificateRefs": [{ "name": "tls" }] });
    let listeners = json!([
        { "name": "web", "port": 80, "protocol": "HTTP", "allowedRoutes": all },
        { "name": "own", "port": 443, "protocol": "HTTPS", "hostname": "h3.test", "tls": tls, "allowedRoutes": all },
    ]);
    let spec = json!({ "gatewayClassName": "sluice", "listeners": listeners });
    let mut objects = vec![named("Gateway", "red", "g0", 0, spec), secret("red", 0)];
    for i in 0..20 {
        objects.push(service(&format!("red/s{i}"), json!([{ "port": 80 }])));
        objects.push(shop_route(i, "/"));
    }
    objects.into_iter().for_each(|object| resources.insert(&good(object)));
    resources
}

fn shop_route(i: usize, path: &str) -> Value {
    let namespace = if i < 2 { "green" } else { "red" };
    let spec = json!({
        "parentRefs": [{ "namespace": "red", "name": "g0" }],
        "hostnames": [format!("h{i}.test")],
        "rules": [{
            "matches": [{ "path": { "type": "PathPrefix", "value": path } }],
            "backendRefs": [{ "namespace": "red", "name": format!("s{i}"), "port": 80 }],
        }],
    });
    named("HTTPRoute", namespace, &format!("h{i}"), 1, spec)
}

#[test]
fn a_change_recomputes_only_its_dependents() {
    let (mut run, mut resources, settings) = (IncrementalRun::default(), shop(), Settings::default());
    let grant = |name: &str| {
        let from = json!([{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "green" }]);
        let spec = json!({ "from": from, "to": [{ "group": "", "kind": "Service", "name": name }] });
        let mut grant = named("ReferenceGrant", "red", "grant", 1, spec);
        grant["apiVersion"] = json!("gateway.networking.k8s.io/v1beta1");
        grant
    };
    let label =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "red", "labels": { "a": "b" } } });
    let policy = json!({
        "targetRefs": [{ "group": "", "kind": "Service", "name": "s5" }],
        "validation": { "hostname": "s5.test", "wellKnownCACertificates": "System" },
    });
    let versions = json!({ "allowedRoutes": { "namespaces": { "from": "All" } } });
    let mut versions = named("RouteSlot", "red", "versions", 1, versions);
    versions["apiVersion"] = json!("gateway.sluice.dev/v1alpha1");
    run.step(&resources, &routers(true), (0, 0), &settings);
    for (what, object, visited) in [
        ("a path", shop_route(7, "/p"), (1, 1)),
        // And the Gateway, whose listener has one more route.
        ("a new route", shop_route(20, "/"), (1, 2)),
        ("a Service of one route", service("red/s9", json!([{ "port": 81 }])), (1, 1)),
        ("a Service of none", service("red/none", json!([{ "port": 81 }])), (0, 0)),
        ("a grant, to two routes of the other namespace", grant("s1"), (2, 2)),
        // `h3.test` is the hostname of the listener with this certificate.
        ("a Secret of one host", secret("red", 1), (1, 1)),
        ("a Secret of none", secret("green", 1), (0, 0)),
        ("labels that no selector matches on", label, (0, 0)),
        ("a ConfigMap of none", config_map("red/ca", json!({})), (0, 0)),
        ("a policy of one Service", named("BackendTLSPolicy", "red", "p", 1, policy), (1, 2)),
        ("a RouteSlot of none", versions, (0, 1)),
    ] {
        resources.insert(&good(object));
        let fresh = run.step(&resources, &routers(true), (0, 0), &settings);
        assert_eq!(run.visited, visited, "{what}");
        assert_eq!(difference(&run.outcome.hosts, &fresh.hosts), None, "{what}");
        assert_eq!(difference(&run.outcome.statuses, &fresh.statuses), None, "{what}");
    }
}
