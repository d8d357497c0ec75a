//! Versions of objects one after another, without a source.

use router_api::parse::parse;
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::ObjectKey;
use serde_json::{Value, json};

use super::*;

/// The versions of one object, fed one version at a time.
#[derive(Default)]
struct Store {
    resources: Resources,
    materials: MaterialCache,
}

impl Store {
    /// The host in force, with the problem of the rejected version, and the errors and warnings of the update.
    fn apply(&mut self, spec: Value, is_garbled: bool) -> (String, Vec<String>) {
        let mut value = json!({
            "apiVersion": "route.openshift.io/v1", "kind": "Route",
            "metadata": { "namespace": "shop", "name": "a" }, "spec": { "to": { "name": "web" } },
        });
        let members = spec.as_object().unwrap().iter().map(|(name, value)| (name.clone(), value.clone()));
        value["spec"].as_object_mut().unwrap().extend(members);
        let defaults = Defaults::default();
        let parsed = parse(value, Origin::default(), &defaults, &mut self.materials);
        let (object, mut candidate, _) = Candidate::new(parsed, &ToString::to_string).unwrap();
        if is_garbled {
            let rejected = RejectedManifest { problem: "is not valid YAML".to_owned(), manifest: Manifest::none() };
            candidate = Candidate { rejected: Some(Arc::new(rejected)), unservable: None, is_garbled, ..candidate };
        }
        let key = ObjectKey::new("shop", "a");
        let last_good = self.resources.object(Kind::Route, &key);
        let context = UpdateContext { origin: Origin::default(), defaults: &defaults, materials: &mut self.materials };
        let Decision { accepted, rejected, revised } = candidate.decide(last_good, context, &ToString::to_string);
        self.resources.set(object.key, object.kind, accepted.as_ref(), rejected.clone());
        let host = self.resources.routes.get(&key).map_or("-".to_owned(), |route| route.host.to_string());
        let problem = rejected.map(|rejected| rejected.problem.clone()).into_iter();
        let Findings { errors, warnings } = revised.unwrap_or_default();
        (host, problem.chain(errors.iter().chain(&warnings).map(ToString::to_string)).collect())
    }

    /// Applies a version and asserts the host in force, and the beginnings of the problems.
    #[track_caller]
    fn expect(&mut self, spec: Value, is_garbled: bool, host: &str, problems: &[&str]) {
        let (in_force, found) = self.apply(spec, is_garbled);
        assert_eq!((in_force.as_str(), found.len()), (host, problems.len()), "{found:?}");
        for (found, problem) in found.iter().zip(problems) {
            assert!(found.starts_with(problem), "{found}");
        }
    }
}

#[test]
fn a_rejected_version_leaves_the_last_good_one_in_force() {
    let mut store = Store::default();
    store.expect(json!({ "host": "A.test" }), false, "-", &["spec.host: Invalid value"]);
    store.expect(json!({ "host": "a.test" }), false, "a.test", &[]);
    // As an update it is parsed again, so its errors are reported anew.
    store.expect(
        json!({ "host": "A.test" }),
        false,
        "a.test",
        &["spec.host: Invalid value", "spec.host: Invalid value"],
    );
    let twice = json!({ "host": "A.test", "path": "x" });
    let (_, problems) = store.apply(twice, false);
    assert!(problems[0].ends_with(" (and 1 more)"), "{problems:?}");
    store.expect(json!({ "host": "b.test" }), false, "b.test", &[]);
}

#[test]
fn an_update_cannot_change_immutable_fields_nor_clear_the_host() {
    let mut store = Store::default();
    store.expect(json!({ "host": "a.test" }), false, "a.test", &[]);
    let wildcard = json!({ "host": "b.test", "wildcardPolicy": "Subdomain" });
    let refused = "spec.wildcardPolicy: Invalid value: \"Subdomain\": field is immutable";
    store.expect(wildcard.clone(), false, "a.test", &[refused, refused]);
    store.expect(json!({ "path": "/x" }), false, "a.test", &["spec.host: is cleared"]);
    // What cannot be read is reported, and not what it was before.
    store.expect(wildcard, true, "a.test", &["is not valid YAML"]);
    store.expect(json!({ "host": "c.test" }), true, "c.test", &["is not valid YAML"]);
}

#[test]
fn invalid_tls_material_is_rejected_only_if_an_older_version_serves() {
    let mut store = Store::default();
    let broken = |host: &str| json!({ "host": host, "tls": { "termination": "edge", "certificate": "nonsense" } });
    store.expect(broken("a.test"), false, "a.test", &[]);
    store.expect(broken("b.test"), false, "b.test", &[]);
    store.expect(json!({ "host": "c.test" }), false, "c.test", &[]);
    store.expect(broken("d.test"), false, "c.test", &["spec.tls.certificate: "]);
}
