//! What one of several CPUs does alone with a carried connection: reusing its port, and going on with its dial; through
//! `BPF_PROG_TEST_RUN`. Each state is one that another CPU may leave between two steps of this one. Needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

#[allow(dead_code, reason = "other tests need the rest")]
mod packets;

use aya::maps::{HashMap, MapData};
use aya::programs::{TestRun, TestRunOptions};
use router_common::maps::{
    Dial, FLIGHT_HEADROOM, FLOW_DIAL_CLAIMED, FLOW_PORT_CLAIMED, Flow, FlowKey, FlowTranslation, PROTOCOL_TLS,
    SHORT_FLIGHT, SIDE_BACKEND, SIDE_CLIENT, STATE_CLOSING, STATE_CONFIRMING, STATE_DIALING, ShortFlight, names,
};
use router_common::packet::{ACK, RST, SYN};
use router_common::verdict::FlowEndReason;
use router_datapath::kernel::{BpfObject, KernelPrograms};
use router_sys::abi::Raw;

use packets::{Client, own_network};

/// `TC_ACT_SHOT` (linux/pkt_cls.h).
const DROPPED: u32 = 2;
/// Sequence number of the SYN to the endpoint.
const DIALED: u32 = 70_000;
/// Length of the client's first flight.
const HELLO: u32 = 100;

struct Rig {
    kernel: KernelPrograms,
    flows: HashMap<MapData, Raw<FlowKey>, Raw<Flow>>,
    flights: HashMap<MapData, Raw<FlowKey>, Raw<ShortFlight>>,
}

fn client() -> Client {
    Client::new("192.0.2.7".parse().unwrap(), 2000, 443)
}

/// The other end of a client's connection.
fn endpoint() -> Client {
    Client::new("10.0.0.2".parse().unwrap(), 8443, 9999).to("10.0.0.1".parse().unwrap())
}

impl Rig {
    /// With the entries of a client's connection, which another program may have changed.
    fn new(change: impl FnOnce(&mut Flow, &mut Flow)) -> Rig {
        own_network();
        let mut kernel = KernelPrograms::load(BpfObject::Plain).expect("the kernel takes the program (are you root?)");
        let flows = HashMap::try_from(kernel.take(names::FLOWS).unwrap()).unwrap();
        let flights = HashMap::try_from(kernel.take(names::SHORT_HELLOS).unwrap()).unwrap();
        let mut rig = Rig { kernel, flows, flights };
        let entry = |to: FlowKey, side: u8| Flow {
            rewrite: FlowTranslation { to, ..Default::default() },
            interface: 1,
            route: 1,
            started_ns: 1,
            endpoint: 1,
            router: 7,
            side,
            protocol: PROTOCOL_TLS,
            ..Default::default()
        };
        let mut of_client = entry(endpoint().flow().reversed(), SIDE_CLIENT);
        let mut of_endpoint = entry(client().flow().reversed(), SIDE_BACKEND);
        change(&mut of_client, &mut of_endpoint);
        rig.flows.insert(Raw(client().flow()), Raw(of_client), 0).unwrap();
        rig.flows.insert(Raw(endpoint().flow()), Raw(of_endpoint), 0).unwrap();
        rig
    }

    /// With a dial whose SYN the endpoint is to answer.
    fn dialing(claims: u8) -> Rig {
        let mut rig = Rig::new(|client, endpoint| {
            (client.state, client.claims, endpoint.state) = (STATE_DIALING, claims, STATE_DIALING);
            client.next_seq = self::client().isn() + 1 + HELLO;
        });
        let dial = Dial { isn: DIALED, slots: 2, ..Default::default() };
        let bytes = [7; (FLIGHT_HEADROOM + SHORT_FLIGHT) as usize];
        let flight = ShortFlight { started_ns: 1, received: HELLO, segments: 1, went_up: 0, pad: 0, dial, bytes };
        rig.flights.insert(Raw(client().flow()), Raw(flight), 0).unwrap();
        rig
    }

    fn run(&mut self, packet: &[u8]) -> u32 {
        let options = TestRunOptions { data_in: Some(packet), ..TestRunOptions::new() };
        self.kernel.ingress().unwrap().test_run(options).unwrap().return_value
    }

    /// The entries, of the client and of the endpoint.
    fn flows(&self) -> [Option<Flow>; 2] {
        [client().flow(), endpoint().flow()].map(|key| self.flows.get(&Raw(key), 0).ok().map(|Raw(flow)| flow))
    }
}

fn ended(client: &mut Flow, endpoint: &mut Flow) {
    for flow in [client, endpoint] {
        (flow.state, flow.end, flow.ended_ns) = (STATE_CLOSING, FlowEndReason::Finished as u8, 2);
    }
}

#[test]
fn a_client_that_begins_anew_deletes_its_connection() {
    let mut rig = Rig::new(ended);
    rig.run(&client().syn());
    assert_eq!(rig.flows(), [None, None]);
}

#[test]
fn a_client_that_begins_anew_leaves_a_port_to_the_connection_that_took_it_over() {
    let newer = 3;
    let mut rig = Rig::new(|client, endpoint| {
        ended(client, endpoint);
        (endpoint.started_ns, endpoint.state) = (newer, STATE_DIALING);
        endpoint.rewrite.to.destination_port += 1;
    });
    rig.run(&client().syn());
    assert_eq!(rig.flows().map(|flow| flow.map(|flow| flow.started_ns)), [None, Some(newer)]);
}

#[test]
fn a_client_that_begins_anew_leaves_a_port_to_the_program_that_takes_it_over() {
    let mut rig = Rig::new(|client, endpoint| {
        ended(client, endpoint);
        endpoint.claims = FLOW_PORT_CLAIMED;
    });
    let before = rig.flows();
    rig.run(&client().syn());
    assert_eq!(rig.flows(), before);
}

#[test]
fn an_answer_to_a_dial_that_another_program_handles_or_gives_up_changes_nothing() {
    let answers = [SYN | ACK, RST | ACK];
    for flags in answers {
        let mut rig = Rig::dialing(FLOW_DIAL_CLAIMED);
        let before = rig.flows();
        assert_eq!(rig.run(&endpoint().segment(flags, 9, DIALED + 1, &[])), DROPPED);
        assert_eq!(rig.flows(), before);
    }
    let [accepted, refused] = answers.map(|flags| {
        let mut rig = Rig::dialing(0);
        rig.run(&endpoint().segment(flags, 9, DIALED + 1, &[]));
        rig.flows().map(|flow| flow.map(|flow| (flow.state, flow.claims)))
    });
    assert_eq!(accepted, [Some((STATE_CONFIRMING, FLOW_DIAL_CLAIMED)), Some((STATE_CONFIRMING, 0))]);
    assert_eq!(refused, [None, None], "the other endpoint is gone");
}

#[test]
fn a_client_that_waits_gives_no_endpoint_up_whose_answer_is_handled() {
    // The dial began at the first nanosecond, more than a second ago.
    let again = client().data(&[7; HELLO as usize]);
    let mut rig = Rig::dialing(FLOW_DIAL_CLAIMED);
    let before = rig.flows();
    assert_eq!(rig.run(&again), DROPPED);
    assert_eq!(rig.flows(), before);
    let mut rig = Rig::dialing(0);
    rig.run(&again);
    assert_eq!(rig.flows(), [None, None], "the other endpoint is gone");
}
