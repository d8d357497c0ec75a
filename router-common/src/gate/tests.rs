//! The gate's decisions, headers, and token buckets.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::thread;
use std::vec::Vec;

use proptest::prelude::*;

use super::arrival::read;
use super::set::Set;
use super::source_bucket::{Limit, Token, take};
use super::*;
use crate::maps::{SET_WORDS, mapped};
use crate::packet::{FIN, RST};

#[derive(Default)]
pub struct SharedSet(pub [AtomicU64; SET_WORDS]);

impl Set for SharedSet {
    fn load(&self, index: u32) -> u64 {
        self.0[index as usize].load(Ordering::SeqCst)
    }

    fn exchange(&self, index: u32, old: u64, new: u64) -> bool {
        self.0[index as usize].compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

impl Word for AtomicU64 {
    fn load(&self) -> u64 {
        self.load(Ordering::SeqCst)
    }

    fn exchange(&self, old: u64, new: u64) -> u64 {
        self.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).unwrap_or_else(|was| was)
    }
}

/// Hash of a source of which the tag is `number`.
fn tagged(number: u64) -> u64 {
    (2 * number + 1) << 40
}

const MINUTE: u64 = 60_000_000_000;
/// One token in a minute.
const SLOW: Limit = Limit { interval: MINUTE >> 8, burst: 60 };

#[test]
fn tokens_come_back_one_by_one() {
    let set = SharedSet::default();
    let burst = Limit { burst: 3, ..SLOW };
    let mut taken = Vec::new();
    for now in [0, 0, 0, 0, MINUTE - 1000, MINUTE, MINUTE, 3 * MINUTE, 3 * MINUTE, 3 * MINUTE, 100 * MINUTE] {
        taken.push(take(&set, tagged(7), now + (1 << 40), burst) == Token::Taken);
    }
    assert_eq!(taken, [true, true, true, false, false, true, false, true, true, false, true]);
}

#[test]
fn eight_senders_at_once_get_as_many_tokens_as_one() {
    for round in 0..200 {
        let set = SharedSet::default();
        let listener = AtomicU64::new(0);
        let counts = thread::scope(|scope| {
            let senders: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let of_source = (0..40).filter(|_| take(&set, tagged(round), MINUTE, SLOW) == Token::Taken);
                        let of_source = of_source.count();
                        let of_listener = (0..40).filter(|_| take_token(&listener, MINUTE, MINUTE, 100)).count();
                        (of_source, of_listener)
                    })
                })
                .collect();
            senders
                .into_iter()
                .map(|sender| sender.join().unwrap())
                .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        });
        assert_eq!(counts, (60, 100), "round {round}");
    }
}

#[test]
fn a_flood_of_sources_evicts_no_source_that_is_limited() {
    let set = SharedSet::default();
    let one = Limit { burst: 1, ..SLOW };
    for source in 0..8 {
        assert_eq!(take(&set, tagged(source), MINUTE, one), Token::Taken);
    }
    for source in 8..100_000 {
        assert_eq!(take(&set, tagged(source), MINUTE + 1000, one), Token::NoRoom);
    }
    for source in 0..8 {
        assert_eq!(take(&set, tagged(source), MINUTE + 2000, one), Token::None);
    }
    // Full buckets make room.
    for source in 100..108 {
        assert_eq!(take(&set, tagged(source), 3 * MINUTE, one), Token::Taken);
    }
}

#[test]
fn a_policy_with_a_short_time_evicts_no_source_of_one_with_a_long_time() {
    let set = SharedSet::default();
    let short = Limit { interval: 1000, burst: 1 };
    for source in 0..8 {
        assert_eq!(take(&set, tagged(source), MINUTE, SLOW), Token::Taken);
    }
    assert_eq!(take(&set, tagged(9), MINUTE, short), Token::NoRoom);
    // A limit that was changed for the source.
    let set = SharedSet::default();
    (0..60).for_each(|_| assert_eq!(take(&set, tagged(1), MINUTE, SLOW), Token::Taken));
    assert_eq!(take(&set, tagged(1), MINUTE, SLOW), Token::None);
    assert_eq!(take(&set, tagged(1), MINUTE, short), Token::Taken);
}

#[test]
fn time_may_wrap() {
    let set = SharedSet::default();
    let one = Limit { burst: 1, ..SLOW };
    let wrap = 1 << 48;
    assert_eq!(take(&set, tagged(1), wrap - 1000, one), Token::Taken);
    assert_eq!(take(&set, tagged(1), wrap + 1000, one), Token::None);
    assert_eq!(take(&set, tagged(1), wrap + MINUTE, one), Token::Taken);
    for empty in 2..9 {
        assert_eq!(take(&set, tagged(empty), 2 * wrap - 1000, one), Token::Taken, "an empty word is free at any time");
    }
}

#[test]
fn a_syn_that_is_sent_again_is_known_once() {
    let set = SharedSet::default();
    let second = 1_000_000_000;
    let again = |at| recent::is_retransmitted(&set, tagged(1), at);
    assert!(!again(MINUTE), "not seen before");
    recent::record(&set, tagged(1), MINUTE);
    assert!(!again(MINUTE + second / 2), "too soon");
    assert!(again(MINUTE + second));
    assert!(!again(MINUTE + second), "a copy");
    assert!(again(MINUTE + 3 * second));
    assert!(!again(3 * MINUTE), "too late");
    recent::record(&set, tagged(1), 3 * MINUTE);
    let repetitions = (1..100).filter(|second_of| again(3 * MINUTE + second_of * second)).count();
    assert_eq!(repetitions, 6, "no host sends it again as often");
    recent::record(&set, tagged(1), 5 * MINUTE);
    assert!(again(5 * MINUTE + second), "a token was taken for it");
    for other in 2..20 {
        recent::record(&set, tagged(other) | other << 21, 6 * MINUTE);
    }
    assert!(recent::is_retransmitted(&set, tagged(19) | 19 << 21, 6 * MINUTE + second));
}

/// Lists and buckets of a test.
#[derive(Default)]
struct Known {
    listed: BTreeSet<(u32, [u8; 16])>,
    of_source: u32,
    of_listener: u32,
    connections: u32,
    counted: Option<FlowKey>,
    asked: Option<Arrival>,
    recorded: Vec<Arrival>,
}

impl GateState for Known {
    fn is_listed(&self, list: u32, source: &[u8; 16]) -> bool {
        self.listed.contains(&(list, *source))
    }

    fn connections_of(&self, _: &GatePolicy, _: &[u8; 16]) -> u32 {
        self.connections
    }

    fn is_counted(&self, flow: &FlowKey) -> bool {
        self.counted == Some(*flow)
    }

    fn is_retransmitted(&mut self, arrival: &Arrival) -> bool {
        self.asked = Some(*arrival);
        self.recorded.contains(arrival)
    }

    fn take_of_source(&mut self, _: &GatePolicy, _: &[u8; 16]) -> bool {
        self.of_source.checked_sub(1).map(|left| self.of_source = left).is_some()
    }

    fn take_of_listener(&mut self, _: &GatePolicy) -> bool {
        self.of_listener.checked_sub(1).map(|left| self.of_listener = left).is_some()
    }

    fn record(&mut self) {
        self.recorded.extend(self.asked);
    }
}

fn syn(seq: u32) -> Arrival {
    let flow = FlowKey { source: mapped([192, 0, 2, 7]), destination: [1; 16], source_port: 9, destination_port: 443 };
    Arrival {
        flow,
        len: 54,
        seq,
        ip: 14,
        tcp: 34,
        tcp_len: 20,
        flags: SYN,
        is_malformed: false,
        is_fragment: false,
        has_options: false,
    }
}

#[test]
fn each_rule_has_its_reason() {
    let policy = GatePolicy { id: 1, ..GatePolicy::default() };
    let mut known = Known { of_source: 2, of_listener: 1, ..Known::default() };
    known.listed.insert((5, syn(0).flow.source));
    let cases = [
        (Arrival { is_malformed: true, ..syn(0) }, policy, Some(Reason::Malformed)),
        (Arrival { is_fragment: true, ..syn(0) }, policy, None),
        (
            Arrival { is_fragment: true, ..syn(0) },
            GatePolicy { flags: GATE_NO_FRAGMENTS, ..policy },
            Some(Reason::Fragmented),
        ),
        (Arrival { has_options: true, ..syn(0) }, policy, None),
        (
            Arrival { has_options: true, ..syn(0) },
            GatePolicy { flags: GATE_NO_OPTIONS, ..policy },
            Some(Reason::IpOptions),
        ),
        (syn(0), GatePolicy { deny: 5, ..policy }, Some(Reason::SourceDenied)),
        (syn(0), GatePolicy { deny: 6, ..policy }, None),
        (syn(0), GatePolicy { allow: 5, ..policy }, None),
        (syn(0), GatePolicy { allow: 6, ..policy }, Some(Reason::SourceNotListed)),
        (syn(0), GatePolicy { allow: 5, deny: 5, ..policy }, Some(Reason::SourceDenied)),
    ];
    for (arrival, policy, expected) in cases {
        assert_eq!(rejection(&arrival, &policy, &mut known), expected, "{arrival:?} {policy:?}");
    }
    let limited = GatePolicy { source_interval: 1, listener_interval: 1, ..policy };
    let mut decide = |arrival| rejection(&arrival, &limited, &mut known);
    assert_eq!(decide(Arrival { flags: SYN | ACK, ..syn(0) }), None);
    assert_eq!(decide(Arrival { flags: ACK, ..syn(0) }), None);
    assert_eq!(decide(syn(1)), None);
    assert_eq!(decide(syn(1)), None, "sent again");
    assert_eq!(decide(syn(2)), Some(Reason::ListenerRate));
    assert_eq!(decide(syn(2)), Some(Reason::SourceRate), "it was not let pass");
}

#[test]
fn a_syn_beyond_the_sources_connections_is_rejected_unless_it_is_of_one_of_them() {
    let policy = GatePolicy { id: 1, source_connections: 3, source_interval: 1, ..GatePolicy::default() };
    let mut known = Known { connections: 2, of_source: 1, ..Known::default() };
    assert_eq!(rejection(&syn(1), &policy, &mut known), None);
    known.connections = 3;
    assert_eq!(rejection(&syn(1), &policy, &mut known), Some(Reason::SourceConnections), "sent again, too");
    assert_eq!(rejection(&Arrival { flags: ACK, ..syn(1) }, &policy, &mut known), None);
    assert_eq!(rejection(&syn(1), &GatePolicy { source_connections: 4, ..policy }, &mut known), None);
    known.counted = Some(syn(1).flow);
    known.recorded.push(syn(1));
    assert_eq!(rejection(&syn(1), &policy, &mut known), None);
}

#[test]
fn a_source_is_a_prefix_under_a_policy() {
    let policy = |v4_bits, v6_bits| GatePolicy { id: 3, v4_bits, v6_bits, ..GatePolicy::default() };
    let v4 = |bits, last| source_key(&policy(bits, 0), &mapped([192, 0, 2, last])).source;
    assert_eq!(v4(24, 7), mapped([192, 0, 2, 0]));
    assert_ne!(v4(32, 7), v4(32, 8));
    assert_eq!(v4(31, 6), v4(31, 7));
    assert_eq!(v4(0, 6), mapped([0; 4]));
    let v6 = |bits| source_key(&policy(32, bits), &[0xff; 16]).source;
    assert_eq!(v6(64), [[0xff; 8], [0; 8]].concat()[..]);
    assert_eq!(v6(128), [0xff; 16]);
    assert_eq!(v6(0), [0; 16]);
    assert_eq!(v6(68)[8], 0xf0);
    let other = GatePolicy { id: 4, ..policy(32, 64) };
    assert_ne!(source_key(&other, &[1; 16]), source_key(&policy(32, 64), &[1; 16]));
}

/// A frame: 12 bytes of addresses, tags, IP, TCP with these flags, and a payload of 4 bytes.
fn frame(tags: &[[u8; 2]], v6: bool, flags: u8) -> Vec<u8> {
    let mut frame = Vec::from([2; 12]);
    for tag in tags {
        frame.extend(tag);
        frame.extend([0, 5]);
    }
    let tcp =
        [[0x12, 0x34, 1, 187, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0].as_slice(), b"data"].concat();
    if v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 6, 64]);
        frame.extend([[0x20, 1].as_slice(), &[7; 14], &[0x20, 2], &[8; 14]].concat());
    } else {
        frame.extend([0x08, 0, 0x45, 0, 0, 44, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 7, 192, 0, 2, 8]);
    }
    frame.extend(tcp);
    frame
}

#[test]
fn frames_are_read_with_and_without_tags() {
    for v6 in [false, true] {
        for tags in [[].as_slice(), &[[0x81, 0]], &[[0x88, 0xa8], [0x81, 0]]] {
            let frame = frame(tags, v6, SYN);
            let arrival = read(&frame.as_slice()).unwrap();
            assert_eq!((arrival.flow.destination_port, arrival.flow.source_port, arrival.seq), (443, 0x1234, 9));
            assert_eq!((arrival.flags, arrival.is_malformed), (SYN, false));
            for len in 0..frame.len() {
                let cut = read(&&frame[..len]);
                assert!(cut.is_none_or(|cut| cut.is_malformed), "{len}: {cut:?}");
            }
            let padded = [frame, Vec::from([0; 20])].concat();
            assert_eq!(read(&padded.as_slice()), Some(Arrival { len: arrival.len + 20, ..arrival }));
        }
        assert_eq!(read(&frame(&[[0x81, 0]; 3], v6, SYN).as_slice()), None);
    }
}

#[test]
fn what_no_host_accepts_is_malformed() {
    let broken = |v6: bool, at: usize, value: u8| {
        let mut frame = frame(&[], v6, SYN);
        frame[at] = value;
        read(&frame.as_slice()).map(|arrival| arrival.is_malformed)
    };
    let v4 = [(14, 0x55), (14, 0x44), (14, 0x4f), (17, 19), (17, 45), (26, 224), (26, 239), (46, 0x40), (46, 0xf0)];
    for (at, value) in v4 {
        assert_eq!(broken(false, at, value), Some(true), "{at} {value}");
    }
    for (at, value) in [(14, 0x50), (19, 19), (19, 25), (22, 0xff), (66, 0x40), (66, 0xf0)] {
        assert_eq!(broken(true, at, value), Some(true), "{at} {value}");
    }
    assert_eq!(broken(false, 26, 240), Some(false), "class E");
    assert_eq!(broken(false, 23, 17), None, "UDP");
    for (flags, is_malformed) in [
        (0, true),
        (FIN, true),
        (SYN | FIN, true),
        (SYN | RST, true),
        (SYN | ACK, false),
        (FIN | ACK, false),
        (RST, false),
        (RST | FIN, false),
        (ACK, false),
        (SYN | 0xc0, false),
    ] {
        for v6 in [false, true] {
            assert_eq!(read(&frame(&[], v6, flags).as_slice()).unwrap().is_malformed, is_malformed, "{flags:x}");
        }
    }
}

#[test]
fn extension_headers_are_gone_through() {
    let with = |next: u8, headers: &[u8]| {
        let mut frame = frame(&[], true, SYN);
        frame[20] = next;
        frame[19] += headers.len() as u8;
        frame.splice(54..54, headers.iter().copied());
        read(&frame.as_slice())
    };
    let hop = with(0, &[60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0]).unwrap();
    assert_eq!((hop.flow.destination_port, hop.has_options, hop.is_fragment), (443, true, false));
    let first = with(44, &[6, 0, 0, 1, 0, 0, 0, 7]).unwrap();
    assert_eq!((first.flow.destination_port, first.is_fragment, first.is_malformed), (443, true, false));
    let later = with(44, &[6, 0, 0, 9, 0, 0, 0, 7]).unwrap();
    assert_eq!((later.flow.destination_port, later.is_fragment, later.is_malformed), (0, true, false));
    assert_eq!(with(44, &[17, 0, 0, 9, 0, 0, 0, 7]), None, "a fragment of UDP");
    assert_eq!(with(51, &[6, 0, 0, 0, 0, 0, 0, 0]), None, "an authentication header");
    let many = with(60, &[60, 0, 1, 4, 0, 0, 0, 0].repeat(9)).unwrap();
    assert_eq!((many.flow.destination_port, many.has_options, many.is_malformed), (0, true, true));
    let eight = [[60, 0, 1, 4, 0, 0, 0, 0].repeat(7), [6, 0, 1, 4, 0, 0, 0, 0].to_vec()].concat();
    let eight = with(60, &eight).unwrap();
    assert_eq!((eight.flow.destination_port, eight.is_malformed), (443, false));
    let mut long = frame(&[], true, SYN);
    long[20] = 60;
    long[18..20].copy_from_slice(&2072_u16.to_be_bytes());
    long.splice(54..54, [[6, 255, 1, 254].as_slice(), &[0; 2044]].concat());
    let long = read(&long.as_slice()).unwrap();
    assert_eq!((long.flow.destination_port, long.is_malformed), (0, true), "it has its port beyond what is read");
    assert!(with(60, &[6, 9, 1, 4, 0, 0, 0, 0]).unwrap().is_malformed, "it ends before its header");
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), v6: bool, at in 12..80_usize) {
        let _ = read(&bytes.as_slice());
        let mut frame = frame(&[], v6, SYN);
        let end = frame.len().min(at + bytes.len());
        if at < end {
            let (to, _) = frame.split_at_mut(end);
            to[at..].copy_from_slice(&bytes[..end - at]);
        }
        let _ = read(&frame.as_slice());
    }
}
