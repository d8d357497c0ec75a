//! Settings and counters of dialing.

use aya::maps::{Array, Map, MapError, PerCpuArray};
use router_common::maps::{Config, EndpointState};
use router_common::verdict::DialCounter;
use serde_json::{Value, json};

use router_sys::abi::Raw;

/// A row of `endpoint_state`.
pub fn state(id: u32, value: &EndpointState) -> Value {
    json!({"endpoint": id, "dials": value.dials, "refused": value.refused, "cursor": value.cursor,
        "maxSegment": value.max_segment})
}

/// The one row of `config`, without the secret.
pub fn config(map: Map) -> Result<Vec<Value>, MapError> {
    let map: Array<_, Raw<Config>> = Array::try_from(map)?;
    let Raw(config) = map.get(&0, 0)?;
    Ok(vec![json!({"dial": config.dial != 0, "firstPort": config.first_port, "ports": config.ports,
        "secret": if config.secret == [0; 2] { "missing" } else { "set" }})])
}

/// Every counter, summed over CPUs.
pub fn counters(map: Map) -> Result<Vec<Value>, MapError> {
    let map: PerCpuArray<_, u64> = PerCpuArray::try_from(map)?;
    let row = |(counter, name): (DialCounter, &str)| {
        let count: u64 = map.get(&(counter as u32), 0)?.iter().sum();
        Ok(json!({"counter": name, "count": count}))
    };
    DialCounter::ALL.into_iter().map(row).collect()
}
