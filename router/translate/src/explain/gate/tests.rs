//! Which clients the gate drops.

use router_api::testing::{controller, resources, route, slice};
use router_table::live_state::Trust;
use serde_json::json;

use super::*;
use crate::explain::explain;
use crate::explain::facts::Facts;
use crate::explain::query::Query;
use crate::settings::Settings;
use crate::translate::translate;

/// What is said of a client of a router that denies everybody.
fn explained(client: &str) -> Explanation {
    let mut controller = controller("default", json!({}));
    controller["metadata"]["annotations"] = json!({ "gate.sluice.dev/deny": "0.0.0.0/0 ::/0" });
    let route = route("a/r", 1, json!({ "host": "h.test" }));
    let resources = resources([controller, route, slice("a/web", &["10.0.0.1"], 8080)]);
    let translation = translate(&resources, &Settings::default());
    let facts = Facts::of(&translation.table, &translation.report, &resources, Trust::default());
    explain(facts, &Query::parse("http://h.test/").unwrap().from_client(client.parse().unwrap()))
}

#[test]
fn a_client_that_is_dropped_reaches_no_other_stage() {
    for client in ["192.0.2.1", "2001:db8::1"] {
        let explanation = explained(client);
        assert!(explanation.is_dropped() && !explanation.served, "{explanation}");
        assert!(matches!(explanation.steps.last(), Some(ExplanationStep::Gate { .. })), "{explanation}");
    }
}

#[test]
fn clients_on_loopback_pass_no_gate() {
    for client in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
        let explanation = explained(client);
        assert!(explanation.served && !explanation.is_dropped(), "{explanation}");
        assert!(explanation.to_string().contains(" passes: packets on loopback pass no gate\n"), "{explanation}");
    }
}
