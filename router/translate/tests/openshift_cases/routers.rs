//! Shards, and the endpoint addresses that a router accepts.

use router_translate::endpoints::addresses::{EndpointAddresses, is_usable};
use serde_json::{Value, json};

use crate::differ;
use crate::world::{World, manifest};

/// True if a router selects a route by its labels and its namespace's.
pub fn sharding(case: &Value, _: &[Value]) -> Vec<String> {
    let object = &case["objects"][0];
    let mut world = World::new(&case["policy"]);
    let metadata = json!({ "name": "ns", "labels": object["namespaceLabels"] });
    world.insert(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }));
    world.insert(manifest(&json!({ "labels": object["routeLabels"] })));
    differ("selected", Some(world.selects("ns/name")), case["expect"]["selected"].as_bool())
}

/// True if an address may be an endpoint.
pub fn endpoint_filter(case: &Value, _: &[Value]) -> Vec<String> {
    let address = case["objects"][0]["address"].as_str().unwrap();
    let usable = is_usable(address.parse().unwrap(), EndpointAddresses::Filtered);
    differ(address, Some(usable), case["expect"]["usable_as_backend"].as_bool())
}
