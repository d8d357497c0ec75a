//! Policies of an IngressController down to the writes of their maps.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net};

use router_api::defaults::Defaults;
use router_api::parse::{ParseOutcome, parse};
use router_api::resources::Resources;
use router_common::maps::{GATE_NO_FRAGMENTS, GATE_OBSERVE, GatePolicy, MAX_GATE_NETS, pressure_id};
use router_listener::{BindState, ListenerState, Protocol};
use router_model::certificate::MaterialCache;
use router_model::object::Origin;
use router_table::policy::gate::COOKIES_ABOVE;
use router_table::table::RoutingTable;
use router_translate::settings::Settings;
use router_translate::translate::translate;
use serde_json::{Value, json};

use super::*;

/// The table of an IngressController with these annotations.
fn table(annotations: Value, publishing: Value) -> RoutingTable {
    let controller = json!({"apiVersion": "operator.openshift.io/v1", "kind": "IngressController",
        "metadata": {"name": "default", "namespace": "openshift-ingress-operator", "annotations": annotations},
        "spec": {"domain": "apps.test", "endpointPublishingStrategy": publishing}});
    let mut resources = Resources::default();
    let origin = Origin { file: "test.yaml".into(), line: 1, column: 1 };
    match parse(controller, origin, &Defaults::default(), &mut MaterialCache::new()).outcome {
        ParseOutcome::Good(object) => resources.insert(&object),
        other => panic!("{other:?}"),
    }
    translate(&resources, &Settings::default()).table
}

fn host_network() -> Value {
    json!({"type": "HostNetwork"})
}

fn listeners(table: &RoutingTable) -> Vec<ListenerState> {
    let router = &table.routers[0];
    let listener = |protocol, address: &str| ListenerState {
        router: router.name.clone(),
        router_id: router.id,
        protocol,
        address: address.parse().unwrap(),
        state: BindState::Bound,
    };
    vec![listener(Protocol::Http, "0.0.0.0:80"), listener(Protocol::Https, "192.0.2.1:443")]
}

fn lowered(table: &RoutingTable, before: &GateImage) -> GateImage {
    lower(table, &listeners(table), &["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()], before)
}

fn listener(address: &str, port: u16) -> (IpAddr, u16) {
    (address.parse().unwrap(), port)
}

#[test]
fn a_controllers_policy_is_that_of_each_of_its_addresses() {
    assert_eq!(lowered(&table(json!({}), host_network()), &GateImage::default()), GateImage::default());
    let annotations = json!({
        "gate.sluice.dev/deny": "10.0.0.0/8",
        "gate.sluice.dev/syn-rate-per-source": "20/s burst 40",
        "gate.sluice.dev/syn-rate": "1000000/s",
        "gate.sluice.dev/fragments": "drop",
    });
    let image = lowered(&table(annotations, host_network()), &GateImage::default());
    let keys: Vec<_> = image.policies.keys().copied().collect();
    let at = |port| ["192.0.2.1", "192.0.2.2"].map(|address| listener(address, port));
    assert_eq!(keys, [at(0)[0], at(80)[0], listener("192.0.2.1", 443), at(0)[1], at(80)[1]]);
    let http = &image.policies[&listener("192.0.2.2", 80)];
    let https = &image.policies[&listener("192.0.2.1", 443)];
    assert_eq!((http.source_interval, http.source_burst), (50_000_000 >> 8, 40));
    assert_eq!((http.listener_interval, http.listener_burst), (1000 << 4, 1_000_000));
    assert_eq!((http.deny, http.allow, http.flags), (1, 0, GATE_NO_FRAGMENTS));
    assert_ne!(http.id, https.id, "each listener has its own token buckets");
    assert_eq!(http.deny, https.deny);
    let of_address = &image.policies[&listener("192.0.2.1", 0)];
    assert_eq!((of_address.deny, of_address.flags), (0, 0), "only malformed packets are decided without their port");
    assert_eq!(image.lists, BTreeMap::from([(1, Arc::from(["10.0.0.0/8".parse().unwrap()]))]));
}

#[test]
fn behind_a_balancer_nothing_depends_on_the_source() {
    let annotations = json!({
        "gate.sluice.dev/deny": "10.0.0.0/8",
        "gate.sluice.dev/allow": "10.0.0.0/8",
        "gate.sluice.dev/syn-rate-per-source": "20/s",
        "gate.sluice.dev/syn-rate": "1000/s",
    });
    let publishing = json!({"type": "HostNetwork", "hostNetwork": {"protocol": "PROXY"}});
    let image = lowered(&table(annotations, publishing), &GateImage::default());
    let policy = &image.policies[&listener("192.0.2.1", 443)];
    assert_eq!((policy.deny, policy.allow, policy.source_interval), (0, 0, 0));
    assert_ne!(policy.listener_interval, 0);
    assert!(image.lists.is_empty());
}

#[test]
fn who_only_observes_drops_nothing() {
    let image = lowered(&table(json!({"gate.sluice.dev/mode": "observe"}), host_network()), &GateImage::default());
    assert!(image.policies.values().all(|policy| policy.flags == GATE_OBSERVE), "{image:?}");
}

/// Maps of a test: writes to a list fail from `room` networks on.
#[derive(Default)]
struct Maps {
    nets: BTreeMap<u32, Vec<IpNet>>,
    policies: BTreeMap<(IpAddr, u16), GatePolicy>,
    room: usize,
    log: Vec<String>,
}

impl GateWrites for Maps {
    fn add(&mut self, list: u32, nets: &[IpNet]) -> io::Result<()> {
        self.log.push(format!("add {list}"));
        for net in nets {
            if self.nets.values().map(Vec::len).sum::<usize>() >= self.room {
                return Err(io::Error::from_raw_os_error(libc::ENOSPC));
            }
            self.nets.entry(list).or_default().push(*net);
        }
        Ok(())
    }

    fn remove(&mut self, list: u32, nets: &[IpNet]) -> io::Result<()> {
        self.log.push(format!("remove {list}"));
        let gone: BTreeSet<&IpNet> = nets.iter().collect();
        self.nets.entry(list).or_default().retain(|net| !gone.contains(net));
        self.nets.retain(|_, nets| !nets.is_empty());
        Ok(())
    }

    fn put(&mut self, listener: (IpAddr, u16), policy: &GatePolicy) -> io::Result<()> {
        for list in [policy.deny, policy.allow] {
            assert!(list == 0 || self.nets.contains_key(&list), "the policy names a list that is not there");
        }
        self.log.push(format!("put {}", listener.1));
        self.policies.insert(listener, *policy);
        Ok(())
    }

    fn withdraw(&mut self, listener: (IpAddr, u16)) -> io::Result<()> {
        self.log.push(format!("withdraw {}", listener.1));
        self.policies.remove(&listener);
        Ok(())
    }
}

#[test]
fn the_old_list_holds_until_the_new_one_is_complete() {
    let denying = |nets: &str| table(json!({"gate.sluice.dev/deny": nets}), host_network());
    let mut maps = Maps { room: 3, ..Maps::default() };
    let mut content = GateContent::default();
    let first = lowered(&denying("10.0.0.0/8"), &content.now);
    assert!(reconcile(&mut maps, &mut content, &first).unwrap());
    assert_eq!(content.now, first);
    assert_eq!(lowered(&denying("10.0.0.0/8"), &content.now), first, "an equal list has the same id");

    // Three networks beside one do not fit in three.
    let larger = denying("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16");
    let wanted = lowered(&larger, &content.now);
    assert_eq!(reconcile(&mut maps, &mut content, &wanted).unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    assert_eq!((&content.now, &maps.policies), (&first, &first.policies));
    assert_eq!(maps.nets.keys().collect::<Vec<_>>(), [&1], "nothing of half a list is left");

    maps.room = 4;
    maps.log.clear();
    assert!(reconcile(&mut maps, &mut content, &wanted).unwrap());
    assert_eq!(content.now, wanted);
    assert_eq!(maps.log, ["add 2", "put 80", "put 443", "put 80", "remove 1"]);

    // More than the map has room for is not even begun.
    maps.log.clear();
    let nets: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(); MAX_GATE_NETS];
    let huge = GateImage { lists: [(2, Arc::clone(&wanted.lists[&2])), (3, nets.into())].into(), ..wanted.clone() };
    let error = reconcile(&mut maps, &mut content, &huge).unwrap_err().to_string();
    assert_eq!(error, "a list of 2097152 networks does not fit beside the 3 that are in force: at most 2097152 do");
    assert_eq!(maps.log, ["remove 2"; 0]);

    assert!(reconcile(&mut maps, &mut content, &GateImage::default()).unwrap());
    assert_eq!((&content.now, maps.log.last()), (&GateImage::default(), Some(&"remove 2".to_owned())));
}

/// A list of that many networks, and a policy that denies it.
fn denying(id: u32, count: usize) -> GateImage {
    let net = |i: u32| IpNet::V4(Ipv4Net::new(Ipv4Addr::from_bits(i << 8), 24).unwrap());
    let nets: Vec<IpNet> = (0..u32::try_from(count).unwrap()).map(net).collect();
    let policy = GatePolicy { id: 1, deny: id, ..GatePolicy::default() };
    GateImage { policies: [(listener("192.0.2.1", 80), policy)].into(), lists: [(id, nets.into())].into() }
}

/// A long list is in force when all of it is there; one that is not wanted any more is removed as far as it was written.
#[test]
fn long_lists_are_written_and_removed_in_parts() {
    let mut maps = Maps { room: 10 * AT_ONCE, ..Maps::default() };
    let mut content = GateContent::default();
    let (long, short) = (denying(1, 2 * AT_ONCE + 1), denying(2, 1));
    let in_map = |maps: &Maps, id| maps.nets.get(&id).map_or(0, Vec::len);
    for written in [AT_ONCE, 2 * AT_ONCE] {
        assert!(!reconcile(&mut maps, &mut content, &long).unwrap());
        assert_eq!((in_map(&maps, 1), content.networks(), maps.policies.len()), (written, written, 0));
        assert!(content.pause.is_zero(), "what is added frees nothing");
    }
    assert!(reconcile(&mut maps, &mut content, &long).unwrap());
    assert_eq!((in_map(&maps, 1), &content.now), (2 * AT_ONCE + 1, &long));
    assert!(!reconcile(&mut maps, &mut content, &short).unwrap());
    assert_eq!(maps.policies, short.policies, "the new one is in force before the old one is removed");
    assert!(!reconcile(&mut maps, &mut content, &short).unwrap());
    assert_eq!(content.pause, write::REMOVAL_PAUSE);
    // In the middle of its removal it is wanted again, under the id that it had.
    assert!(!reconcile(&mut maps, &mut content, &long).unwrap());
    let rounds = (0..10).take_while(|_| !reconcile(&mut maps, &mut content, &long).unwrap()).count();
    assert!(rounds < 5, "{rounds}");
    assert_eq!((in_map(&maps, 1), in_map(&maps, 2), &content.now), (2 * AT_ONCE + 1, 0, &long));
    // It is given up when half of it is written.
    let other = denying(3, 3 * AT_ONCE);
    assert!(!reconcile(&mut maps, &mut content, &other).unwrap());
    while !reconcile(&mut maps, &mut content, &GateImage::default()).unwrap() {}
    assert_eq!((maps.nets.values().map(Vec::len).sum::<usize>(), content.networks()), (0, 0));
}

#[test]
fn every_listener_has_a_rate_unless_a_rule_drops_what_completes_a_handshake() {
    let local = ["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()];
    let above = |annotations, loses: fn(SocketAddr) -> bool| {
        let table = table(annotations, host_network());
        let rule = |address| loses(address).then(|| "a rule".into());
        let lowered = cookie_listeners(&table, &listeners(&table), &local, rule);
        assert_eq!(
            lowered.keys().copied().collect::<Vec<_>>(),
            [pressure_id(table.routers[0].id, false), pressure_id(table.routers[0].id, true)]
        );
        lowered.into_values().map(|listener| (listener.above, listener.lost.is_some())).collect::<Vec<_>>()
    };
    let rate = |text: &str| json!({"gate.sluice.dev/syn-cookies": text});
    assert_eq!(above(json!({}), |_| false), [(COOKIES_ABOVE, false); 2]);
    assert_eq!(above(json!({"gate.sluice.dev/mode": "observe"}), |_| false), [(COOKIES_ABOVE, false); 2]);
    assert_eq!(above(rate("9/s"), |_| false), [(9, false); 2]);
    assert_eq!(above(rate("off"), |_| true), [(0, false); 2]);
    let of_second = |address: SocketAddr| address.ip() == IpAddr::from([192, 0, 2, 2]);
    assert_eq!(above(rate("9/s"), of_second), [(0, true), (9, false)], "the first one listens on every address");
    let table = table(rate("9/s"), host_network());
    assert_eq!(lowered(&table, &GateImage::default()), GateImage::default(), "nothing is rejected");
}
