//! Policies of routers as those of their listening addresses. Pure.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use router_common::maps::{GATE_NO_FRAGMENTS, GATE_NO_OPTIONS, GATE_OBSERVE, GatePolicy, pressure_id};
use router_listener::{BindState, ListenerState, Protocol};
use router_table::policy::gate::GatePolicy as Policy;
use router_table::table::{RouterTable, RoutingTable};

use super::image::GateImage;
use crate::lower::reachable;

/// Lowers the policies of a table. Lists that are equal to some of `before` have their ids. `local` as in
/// [`lower`](crate::lower::lower).
pub fn lower(table: &RoutingTable, listeners: &[ListenerState], local: &[IpAddr], before: &GateImage) -> GateImage {
    let mut image = GateImage::default();
    for listener in listeners.iter().filter(|listener| listener.state == BindState::Bound) {
        let Some(router) = table.routers.iter().find(|router| router.id == listener.router_id) else { continue };
        let Some(policy) = router.policy.gate.as_ref().filter(|policy| policy.rejects) else { continue };
        let id = pressure_id(router.id, listener.protocol == Protocol::Https);
        let lowered = lower_policy(id, policy, router, before, &mut image);
        for ip in reachable(listener.address, local) {
            image.policies.insert((ip, listener.address.port()), lowered);
            // Whoever has malformed headers: they are observed only if every listener at the address only observes.
            let of_address = image.policies.entry((ip, 0)).or_insert(GatePolicy {
                id,
                flags: GATE_OBSERVE,
                ..GatePolicy::default()
            });
            of_address.flags &= lowered.flags;
        }
    }
    image
}

/// The kernel form of a policy. Behind a balancer that sends PROXY headers, the source is the balancer's: nothing that depends
/// on it applies.
fn lower_policy(
    id: u32,
    policy: &Policy,
    router: &RouterTable,
    before: &GateImage,
    image: &mut GateImage,
) -> GatePolicy {
    let has_header = router.policy.accept_proxy;
    let flags = [
        (policy.observes, GATE_OBSERVE),
        (policy.rejects_fragments, GATE_NO_FRAGMENTS),
        (policy.rejects_options, GATE_NO_OPTIONS),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum();
    let deny = Some(&policy.deny).filter(|list| !list.is_empty() && !has_header);
    let allow = router.gate_allow().filter(|_| !has_header);
    let mut list = |list: Option<&Arc<[IpNet]>>| list.map_or(0, |list| image.list(list, before));
    let (deny, allow) = (list(deny), list(allow));
    let source = policy.source_rate.filter(|_| !has_header);
    GatePolicy {
        listener_interval: policy.listener_rate.map_or(0, |rate| nanoseconds(rate.interval) << 4),
        listener_burst: policy.listener_rate.map_or(1, |rate| rate.burst),
        id,
        deny,
        allow,
        source_interval: source
            .map_or(0, |rate| u32::try_from(nanoseconds(rate.interval) >> 8).unwrap_or(u32::MAX).max(1)),
        source_burst: source.map_or(1, |rate| rate.burst),
        source_connections: policy.source_connections.filter(|_| !has_header).unwrap_or_default(),
        flags,
        v4_bits: policy.v4_bits,
        v6_bits: policy.v6_bits,
        pad: [0; 6],
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX >> 4)
}
