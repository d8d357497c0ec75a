//! Translated packets are equivalent to the original in the receiver's view, and their checksums are valid.

mod across;
mod ends;
mod fragments;
pub mod frame;
pub mod options;
mod stream;

use proptest::prelude::*;
use std::vec::Vec;

use super::*;
use crate::maps::mapped;
use crate::packet::{FIN, Packet, RST, segment};
use frame::{Frame, Headers, Sums};
use options::{Options, any_options};

/// Addresses of one IP version and ports.
pub(super) fn any_flow(v6: bool) -> impl Strategy<Value = FlowKey> {
    let address = move || any::<[u8; 16]>().prop_map(move |a| if v6 { a } else { mapped([a[0], a[1], a[2], a[3]]) });
    (address(), address(), any::<u16>(), any::<u16>()).prop_map(
        |(source, destination, source_port, destination_port)| FlowKey {
            source,
            destination,
            source_port,
            destination_port,
        },
    )
}

/// Numbers close to the ends of their range in half of all cases, so that wrapping is covered.
pub(super) fn any_number() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), 0..4_u32, (0..2000_u32).prop_map(|below| u32::MAX - below)]
}

fn any_translation(v6: bool) -> impl Strategy<Value = FlowTranslation> {
    (any_flow(v6), [any_number(), any_number(), any_number(), any_number()], 0..15_u8, 0..15_u8).prop_map(
        |(to, [delta_seq, delta_ack, delta_tsval, delta_tsecr], shift_up, shift_down)| FlowTranslation {
            to,
            delta_seq,
            delta_ack,
            delta_tsval,
            delta_tsecr,
            shift_up,
            shift_down,
            pad: [0; 2],
        },
    )
}

pub fn any_headers(v6: bool) -> impl Strategy<Value = Headers> {
    let flags = prop_oneof![Just(ACK), Just(SYN), Just(SYN | ACK), Just(RST), Just(FIN | ACK), any::<u8>()];
    (any_flow(v6), any_number(), any_number(), flags, any::<[u16; 2]>(), 0..16_u8).prop_map(
        move |(flow, seq, ack, flags, [window, urgent], reserved)| Headers {
            v6,
            flow,
            seq,
            ack,
            reserved,
            flags,
            window,
            urgent,
        },
    )
}

pub fn any_sums() -> impl Strategy<Value = Sums> {
    prop_oneof![Just(Sums::Full), Just(Sums::Partial), Just(Sums::Complete(0))]
}

fn any_case() -> impl Strategy<Value = (Headers, FlowTranslation, Sums)> {
    any::<bool>().prop_flat_map(|v6| (any_headers(v6), any_translation(v6), any_sums()))
}

/// The translation of the opposite direction, except for the window.
fn back(headers: &Headers, t: &FlowTranslation) -> FlowTranslation {
    FlowTranslation {
        to: headers.flow,
        delta_seq: t.delta_seq.wrapping_neg(),
        delta_ack: t.delta_ack.wrapping_neg(),
        delta_tsval: t.delta_tsval.wrapping_neg(),
        delta_tsecr: t.delta_tsecr.wrapping_neg(),
        shift_up: 0,
        shift_down: 0,
        pad: [0; 2],
    }
}

/// Translates like the kernel program, and verifies every checksum.
pub(super) fn translated(frame: &Frame, t: &FlowTranslation) -> Frame {
    let mut frame = frame.clone();
    let read = segment(&&frame.bytes[..]).expect("a TCP segment");
    assert!(translate(&mut frame, &read, t), "refused: {read:?}");
    frame.assert_sums();
    frame
}

/// The expected headers, the window aside.
fn expected(headers: &Headers, t: &FlowTranslation) -> Headers {
    let ack = headers.flags & ACK != 0;
    Headers {
        flow: t.to,
        seq: headers.seq.wrapping_add(t.delta_seq),
        ack: if ack { headers.ack.wrapping_add(t.delta_ack) } else { headers.ack },
        ..*headers
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_translated_packet_is_the_packet_of_the_other_connection(
        (headers, t, sums) in any_case(),
        options in any_options(),
        payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let frame = headers.frame(&options.bytes(), &payload, sums);
        frame.assert_sums();
        let window = (u64::from(headers.window) << t.shift_up >> t.shift_down).min(0xffff) as u16;
        let window = if headers.flags & SYN != 0 { headers.window } else { window };
        let there = Headers { window, ..expected(&headers, &t) };
        let wanted = there.frame(&options.translated(&t, headers.flags & ACK != 0).bytes(), &payload, sums);
        let got = translated(&frame, &t);
        prop_assert_eq!(&got.bytes, &wanted.bytes);
    }

    #[test]
    fn the_way_back_restores_the_packet(
        (headers, mut t, sums) in any_case(),
        options in prop::collection::vec(any::<u8>(), 0..11).prop_flat_map(|words| {
            prop::collection::vec(prop_oneof![0..9_u8, any::<u8>(), Just(10)], words.len() * 4)
        }),
        payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        (t.shift_up, t.shift_down) = (0, 0);
        let frame = headers.frame(&options, &payload, sums);
        let there = translated(&frame, &t);
        let kept = there.bytes.len() - payload.len();
        prop_assert_eq!(&there.bytes[kept..], &payload[..]);
        let again = translated(&there, &back(&headers, &t));
        prop_assert_eq!(again.bytes, frame.bytes);
    }

    #[test]
    fn a_window_is_never_announced_larger((headers, t, sums) in any_case()) {
        let there = translated(&headers.frame(&[], &[], sums), &t);
        let announced = segment(&&there.bytes[..]).map(|segment| u64::from(segment.window)).unwrap();
        let (own, unit) = (u64::from(headers.window) << t.shift_up, 1_u64 << t.shift_down);
        if headers.flags & SYN != 0 {
            prop_assert_eq!(announced, u64::from(headers.window));
        } else {
            prop_assert!(announced * unit <= own);
            prop_assert!(announced == 0xffff || own - announced * unit < unit, "{} of {} announced in units of {}", announced, own, unit);
        }
    }

    #[test]
    fn a_checksum_left_to_hardware_is_told_by_its_field(
        (headers, _, sums) in any_case(),
        payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let read = |sums| {
            let frame = headers.frame(&[], &payload, sums);
            let segment = segment(&&frame.bytes[..]).unwrap();
            (segment, frame.load::<2>(segment.tcp + CHECKSUM).unwrap())
        };
        let ((segment, field), (_, partial)) = (read(sums), read(Sums::Partial));
        prop_assert_eq!(is_pseudo_sum(&segment, field), field == partial);
    }

    #[test]
    fn a_packet_that_ends_early_is_refused((headers, t, sums) in any_case(), words in 0..11_usize, cut in 4..60_usize) {
        let mut frame = headers.frame(&std::vec![1; words * 4], &[], sums);
        let read = segment(&&frame.bytes[..]).unwrap();
        // The frame is shorter than when it was read: no access is out of bounds, and nothing panics.
        let len = frame.bytes.len() - cut.min(20 + words * 4);
        frame.bytes.truncate(len);
        prop_assert!(!translate(&mut frame, &read, &t));
    }
}

/// A translation that changes every number.
fn changing_all() -> FlowTranslation {
    FlowTranslation {
        to: FlowKey {
            source: mapped([10, 0, 0, 1]),
            destination: mapped([10, 0, 0, 2]),
            source_port: 1,
            destination_port: 2,
        },
        delta_seq: 1,
        delta_ack: 0xffff_0001,
        delta_tsval: 0x0102_0304,
        delta_tsecr: 0x8000_0000,
        shift_up: 0,
        shift_down: 0,
        pad: [0; 2],
    }
}

#[test]
fn every_option_at_every_offset_is_translated() {
    let t = changing_all();
    let headers = Headers { flow: t.to.reversed(), flags: ACK, ..Headers::default() };
    for blocks in 1..=4 {
        for before in 0..=(38 - blocks * 8) {
            let sack: Vec<u32> = (0..blocks as u32 * 2).map(|i| 0xffff_fff0 + i).collect();
            let mut options = std::vec![options::Opt::Nop; before];
            options.push(options::Opt::Sack(sack));
            let options = Options::new(options, Vec::new());
            let got = translated(&headers.frame(&options.bytes(), b"x", Sums::Full), &t);
            let wanted = expected(&headers, &t).frame(&options.translated(&t, true).bytes(), b"x", Sums::Full);
            assert_eq!(got.bytes, wanted.bytes, "{blocks} after {before}");
            assert_ne!(options.translated(&t, true).bytes(), options.bytes());
        }
    }
}

#[test]
fn an_option_that_is_cut_off_stays_as_it_is() {
    let t = changing_all();
    let headers = Headers { flow: t.to.reversed(), flags: ACK, ..Headers::default() };
    for (kind, len) in [(8, 10), (5, 10), (5, 18), (5, 26), (5, 34)] {
        for room in (4..=40).step_by(4) {
            for there in 2..len.min(room + 1) {
                let mut options = std::vec![1; room - there];
                options.extend([kind, len as u8]);
                options.resize(room, 9);
                let got = translated(&headers.frame(&options, b"x", Sums::Full), &t);
                let wanted = expected(&headers, &t).frame(&options, b"x", Sums::Full);
                assert_eq!(got.bytes, wanted.bytes, "{there} of {len} bytes of kind {kind} in {room}");
            }
        }
    }
}
