//! The XDP gate's policy for a router, applied to the client of the query.

use std::net::IpAddr;

use ipnet::IpNet;
use router_common::verdict::Reason;
use router_table::policy::gate::{COOKIES_ABOVE, GatePolicy, SynRate};
use router_table::table::RouterTable;

use super::outcome::OutcomeKind;
use crate::explain::explanation::{Explanation, ExplanationStep};
use crate::openshift::controllers::is_made;

/// Most networks of a list that are named.
const NAMED: usize = 8;

/// Adds the gate's step, if the router has a policy. Returns false, with the verdict set, if the gate drops the packets of
/// the query's client.
pub fn lets_pass(router: &RouterTable, client: Option<IpAddr>, out: &mut Explanation) -> bool {
    let Some(policy) = router.policy.gate.as_deref() else { return true };
    // Behind a balancer that sends PROXY headers, packets have its address.
    let client = client.filter(|_| !router.policy.accept_proxy).map(|client| client.to_canonical());
    // The gate is not attached to the loopback interface.
    let gated = client.filter(|client| !client.is_loopback());
    let rejection = gated.and_then(|client| rejection(policy, router, client));
    let rules = rules(router);
    let fate = client.map(|client| match (&rejection, policy.observes) {
        (None, _) if gated.is_none() => format!("{client} passes: packets on loopback pass no gate"),
        (None, _) => format!("{client} passes, as long as it keeps within these limits"),
        (Some((reason, why)), true) => {
            format!("{client} would be dropped ({}: {why}), and is only counted", reason.text())
        }
        (Some((reason, why)), false) => format!("{client} is dropped ({}: {why})", reason.text()),
    });
    out.steps.push(ExplanationStep::Gate { rules, client: fate });
    let Some((reason, why)) = rejection.filter(|_| !policy.observes) else { return true };
    let client = client.map(|client| client.to_string()).unwrap_or_default();
    out.verdict = format!("no answer: the XDP gate drops packets of {client}: {why}");
    out.fix = Some(format!("change the annotations gate.sluice.dev of {}", owner(router)));
    out.outcome.push(OutcomeKind::Dropped { cause: reason.text().to_owned() }.into());
    false
}

/// Whose annotations a router's policy is from.
fn owner(router: &RouterTable) -> String {
    if !is_made(&router.name.0) {
        return format!("IngressController {}", router.name);
    }
    let ports: Vec<String> = router.http_port.iter().chain(&router.https_port).map(u16::to_string).collect();
    format!("the Gateways with listeners on port {}", ports.join(" or "))
}

/// Why packets of a client are dropped, whatever its rate.
fn rejection(policy: &GatePolicy, router: &RouterTable, client: IpAddr) -> Option<(Reason, String)> {
    if let Some(net) = policy.deny.iter().find(|net| net.contains(&client)) {
        return Some((Reason::SourceDenied, format!("{net} is denied")));
    }
    let is_listed = router.gate_allow().is_none_or(|allow| allow.iter().any(|net| net.contains(&client)));
    (!is_listed).then(|| (Reason::SourceNotListed, "it is in no network that may connect".to_owned()))
}

/// What the gate does with packets to a router's listeners, one sentence each; empty: it has no policy.
pub fn rules(router: &RouterTable) -> Vec<String> {
    let Some(policy) = router.policy.gate.as_deref() else { return Vec::new() };
    let has_header = router.policy.accept_proxy;
    let cookies = match policy.cookies_above {
        0 => "SYNs are never answered with cookies".to_owned(),
        above => format!("SYNs beyond {above} a second are answered with cookies"),
    };
    if !policy.rejects {
        return vec![cookies];
    }
    let mut rules = vec!["malformed packets are dropped".to_owned()];
    if has_header {
        rules.push("rules about sources do not apply: connections begin with a PROXY header".to_owned());
    } else {
        if !policy.deny.is_empty() {
            rules.push(format!("denied: {}", named(&policy.deny)));
        }
        match router.gate_allow() {
            Some(allow) if policy.allow.is_some() => rules.push(format!("only {} may connect", named(allow))),
            Some(allow) => rules.push(format!("only {} may connect: the allow-list of every route", named(allow))),
            None => {}
        }
        if policy.rejects_unlisted && (policy.allow.is_some() || router.common_allow.is_none()) {
            let why = match &policy.allow {
                Some(_) => "gate.sluice.dev/allow takes precedence",
                None => "not all routes have the same one",
            };
            rules.push(format!("allow-lists of routes stay with the routes: {why}"));
        }
        if let Some(rate) = &policy.source_rate {
            let (v4, v6) = (policy.v4_bits, policy.v6_bits);
            rules.push(format!("SYNs of each source (/{v4}, /{v6}): {}", written(rate)));
        }
        if let Some(most) = policy.source_connections {
            let (v4, v6) = (policy.v4_bits, policy.v6_bits);
            rules.push(format!("open connections of each source (/{v4}, /{v6}): at most {most}"));
        }
    }
    if let Some(rate) = &policy.listener_rate {
        rules.push(format!("SYNs of all sources: {}", written(rate)));
    }
    for (is_rejected, what) in [
        (policy.rejects_fragments, "fragments are dropped"),
        (policy.rejects_options, "packets with IPv4 options or IPv6 extension headers are dropped"),
    ] {
        if is_rejected {
            rules.push(what.to_owned());
        }
    }
    if policy.cookies_above != COOKIES_ABOVE {
        rules.push(cookies);
    }
    if policy.observes {
        rules.push("nothing is dropped: mode observe".to_owned());
    }
    rules
}

fn named(nets: &[IpNet]) -> String {
    let mut text = nets.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if nets.len() > NAMED {
        text.push_str(&format!(" and {} more", nets.len() - NAMED));
    }
    text
}

fn written(rate: &SynRate) -> String {
    format!("one in {:?}, {} at once", rate.interval, rate.burst)
}

#[cfg(test)]
mod tests;
