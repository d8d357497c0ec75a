//! The actions on connections, case by case.

use router_common::maps::{FlowTranslation, SIDE_BACKEND};

use super::*;

const NOW: Duration = Duration::from_secs(100_000);
const IDLE: Duration = Duration::from_secs(3600);

fn ago(seconds: u64) -> u64 {
    (NOW - Duration::from_secs(seconds)).as_nanos() as u64
}

fn key(from: u8, to: u8) -> FlowKey {
    FlowKey { source: [from; 16], destination: [to; 16], source_port: from.into(), destination_port: to.into() }
}

/// A connection that began one second ago.
pub fn flow(state: u8) -> Flow {
    Flow {
        rewrite: FlowTranslation { to: key(3, 4), ..Default::default() },
        interface: 1,
        route: 5,
        bytes: 100,
        packets: 10,
        last_ns: ago(1),
        started_ns: ago(50_000),
        endpoint: 6,
        router: 7,
        state,
        side: SIDE_CLIENT,
        protocol: 2,
        ..Default::default()
    }
}

#[test]
fn every_state_has_its_time() {
    use FlowEndReason::{BackendReset, Finished, Fragmented, Idle, Silent};
    let closing = |ended, own, end| Flow { ended_ns: ago(ended), own, end: end as u8, ..flow(STATE_CLOSING) };
    let dialing = |state, started| Flow { started_ns: ago(started), last_ns: ago(0), ..flow(state) };
    let moved = |last| Flow { last_ns: ago(last), ..flow(STATE_ESTABLISHED) };
    let back = |last| Some(Flow { side: SIDE_BACKEND, last_ns: ago(last), ..flow(STATE_ESTABLISHED) });
    for (name, client, backend, fate) in [
        ("lingering", closing(9, FLOW_REPORTED, Finished), None, FlowAction::Keep),
        ("lingering, not told yet", closing(9, 0, Finished), None, FlowAction::Keep),
        ("lingering to the last", closing(10, FLOW_REPORTED, Finished), None, FlowAction::Keep),
        ("lingered, told", closing(11, FLOW_REPORTED, Finished), None, FlowAction::Forget),
        ("lingered, the ring was full", closing(11, 0, BackendReset), None, FlowAction::End(BackendReset)),
        ("dialing", dialing(STATE_DIALING, 4), None, FlowAction::Keep),
        ("dialing in vain", dialing(STATE_DIALING, 6), None, FlowAction::End(Silent)),
        ("confirming", dialing(STATE_CONFIRMING, 14), None, FlowAction::Keep),
        ("confirming in vain", dialing(STATE_CONFIRMING, 16), None, FlowAction::End(Silent)),
        ("busy", moved(1), back(4000), FlowAction::Keep),
        ("answering", moved(4000), back(1), FlowAction::Keep),
        ("idle", moved(3601), back(3601), FlowAction::End(Idle)),
        ("not idle yet", moved(3599), back(3601), FlowAction::Keep),
        ("idle, half gone", moved(3601), None, FlowAction::End(Idle)),
        ("just made", Flow { last_ns: 0, started_ns: ago(1), ..flow(STATE_ESTABLISHED) }, None, FlowAction::Keep),
        ("given up", Flow { end: Fragmented as u8, ..moved(1) }, back(1), FlowAction::End(Fragmented)),
        ("of no state", flow(77), None, FlowAction::Keep),
        ("from the future", Flow { last_ns: ago(0) + 5, ..flow(STATE_ESTABLISHED) }, None, FlowAction::Keep),
    ] {
        assert_eq!(judge(&client, backend.as_ref(), NOW, IDLE), fate, "{name}");
        // If the backend's entry is not read, the result is the same.
        assert!(fate == FlowAction::Keep || needs_backend(&client, NOW, IDLE), "{name}");
    }
}

#[test]
fn a_routes_own_timeout_counts() {
    let client = Flow { last_ns: ago(61), ..flow(STATE_ESTABLISHED) };
    assert!(needs_backend(&client, NOW, Duration::from_secs(60)));
    assert!(!needs_backend(&client, NOW, Duration::from_secs(62)), "whatever the other direction says, it stays");
    assert_eq!(judge(&client, None, NOW, Duration::from_secs(60)), FlowAction::End(FlowEndReason::Idle));
    assert_eq!(judge(&client, None, NOW, Duration::from_secs(62)), FlowAction::Keep);
}

#[test]
fn what_lives_is_due_when_it_is_judged_to_end() {
    let moment = Duration::from_nanos(1);
    for state in [STATE_DIALING, STATE_CONFIRMING, STATE_ESTABLISHED] {
        let client = flow(state);
        let due = due(&client, IDLE).expect("it lives");
        assert_eq!(judge(&client, None, due, IDLE), FlowAction::Keep, "{}", super::state(state));
        assert_ne!(judge(&client, None, due + moment, IDLE), FlowAction::Keep, "{}", super::state(state));
    }
    assert_eq!(due(&flow(STATE_CLOSING), IDLE), None);
}

#[test]
fn an_end_has_both_directions() {
    let client = flow(STATE_ESTABLISHED);
    let backend = Flow { bytes: 7000, packets: 70, side: SIDE_BACKEND, ..client };
    let end = end_of(&key(1, 2), &client, Some(&backend), NOW, FlowEndReason::Idle);
    assert_eq!((end.client, end.backend), (key(1, 2), key(3, 4)));
    assert_eq!((end.bytes_in, end.bytes_out, end.packets_in, end.packets_out), (100, 7000, 10, 70));
    assert_eq!((end.router, end.route, end.endpoint), (7, 5, 6));
    assert_eq!((end.started_ns, end.ended_ns, end.reason), (ago(50_000), ago(0), FlowEndReason::Idle as u8));
    let ended = Flow { state: STATE_CLOSING, ended_ns: ago(12), ..client };
    assert_eq!(end_of(&key(1, 2), &ended, None, NOW, FlowEndReason::Finished).ended_ns, ago(12));
    let unanswered = Flow { ended_ns: ago(12), ..client };
    assert_eq!(end_of(&key(1, 2), &unanswered, None, NOW, FlowEndReason::Idle).ended_ns, ago(0), "a SYN of 12 s ago");
    assert_eq!(other_direction(&client), key(4, 3));
}

#[test]
fn only_what_is_old_can_have_lost_its_other_direction() {
    let young = Flow { started_ns: ago(9), last_ns: 0, ..flow(STATE_DIALING) };
    assert!(!has_settled(&young, NOW));
    assert!(has_settled(&Flow { started_ns: ago(11), ..young }, NOW));
    assert!(!has_settled(&Flow { started_ns: ago(10), ..young }, NOW));
    assert!(!has_settled(&Flow { started_ns: ago(11), last_ns: ago(1), ..young }, NOW));
    assert!(!has_settled(&Flow { started_ns: ago(11), ended_ns: ago(1), ..young }, NOW));
}

#[test]
fn an_entry_is_deleted_after_its_end_was_reported_and_it_has_lingered() {
    let closed = Flow { ended_ns: ago(11), own: FLOW_REPORTED, ..flow(STATE_CLOSING) };
    assert!(has_lingered(&closed, NOW));
    assert!(!has_lingered(&Flow { ended_ns: ago(10), ..closed }, NOW));
    assert!(!has_lingered(&Flow { own: !FLOW_REPORTED, ..closed }, NOW));
    assert!(!has_lingered(&Flow { state: STATE_ESTABLISHED, ..closed }, NOW));
}

#[test]
fn states_and_sides_are_named() {
    let states = [STATE_DIALING, STATE_CONFIRMING, STATE_ESTABLISHED, STATE_CLOSING, 77].map(state);
    assert_eq!(states, ["dialing", "confirming", "established", "closing", "unknown"]);
    let client = flow(STATE_ESTABLISHED);
    assert!(is_client(&client) && !is_client(&Flow { side: SIDE_BACKEND, ..client }));
}
