//! Headers that a host skips are removed, and those that it rejects are reported.

use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::packet::segment;
use crate::translate::tests::frame::{Frame, Headers, Sums};
use crate::translate::tests::options::any_options;
use crate::translate::tests::{any_headers, any_sums};

fn read(frame: &Frame) -> Option<Extensions> {
    let mut extensions = Extensions::default();
    if !extensions.begin(frame) {
        return None;
    }
    let mut steps = 0;
    while extensions.step(frame) {
        steps += 1;
        assert!(steps <= 4096, "it ends");
    }
    Some(extensions)
}

/// An options header: its `next`, and options padded to a whole header.
fn of_options(next: u8, options: &[u8]) -> Vec<u8> {
    let len = (options.len() + 2).next_multiple_of(8);
    let mut header = vec![next, (len / 8 - 1) as u8];
    header.extend(options);
    header.resize(len, 0);
    header
}

/// Consecutive headers, with the protocol number of the first.
fn chain(headers: &[(u8, Vec<u8>)]) -> (u8, Vec<u8>) {
    let mut bytes = Vec::new();
    for (i, (_, header)) in headers.iter().enumerate() {
        let next = headers.get(i + 1).map_or(TCP, |(number, _)| *number);
        bytes.push(next);
        bytes.extend(&header[1..]);
    }
    (headers[0].0, bytes)
}

fn plain(v6: bool) -> Frame {
    let flow = crate::maps::FlowKey {
        source: if v6 { [1; 16] } else { crate::maps::mapped([192, 0, 2, 1]) },
        destination: if v6 { [2; 16] } else { crate::maps::mapped([198, 51, 100, 1]) },
        source_port: 1000,
        destination_port: 443,
    };
    Headers { v6, flow, seq: 7, ..Headers::default() }.frame(&[], b"hello", Sums::Full)
}

/// Whether IPv4 with these options is rejected.
fn refused4(options: &[u8]) -> bool {
    let read = read(&plain(false).with(0, options)).unwrap();
    assert_eq!((read.found, read.extra), (1, options.len() as u32), "{options:?}");
    read.refused == 1
}

/// Whether IPv6 with these headers is rejected; `None` if no TCP is found.
fn refused6(headers: &[(u8, Vec<u8>)]) -> Option<bool> {
    let (next, bytes) = chain(headers);
    let read = read(&plain(true).with(next, &bytes)).unwrap();
    (read.found == 1).then_some(read.refused == 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_packet_without_what_was_between_is_the_packet(
        headers in any::<bool>().prop_flat_map(any_headers),
        sums in any_sums(),
        options in any_options(),
        payload in prop::collection::vec(any::<u8>(), 0..64),
        (hop, destination, routing, atomic, words) in any::<(bool, bool, bool, bool, u8)>(),
    ) {
        let frame = headers.frame(&options.bytes(), &payload, sums);
        let with = if headers.v6 {
            let mut between = Vec::new();
            if hop { between.push((0, of_options(0, &[5, 2, 0, 0]))); }
            if destination { between.push((60, of_options(0, &[0x1e, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 1, 0]))); }
            if routing { between.push((43, vec![0, 0, 0, 0, 0, 0, 0, 0])); }
            if atomic { between.push((44, vec![0, 0, 0, 0, 1, 2, 3, 4])); }
            between.push((60, of_options(0, &[1, 2, 0, 0])));
            let (next, bytes) = chain(&between);
            frame.with(next, &bytes)
        } else {
            let words = usize::from(words % 10) + 1;
            let mut options = vec![1; words * 4];
            if words > 2 { options[..7].copy_from_slice(&[7, 7, 4, 0, 0, 0, 0]); }
            if words > 4 { options[12] = 0; options[13] = 131; }
            frame.with(0, &options)
        };
        prop_assert!(segment(&with).is_err());
        let read = read(&with).unwrap();
        prop_assert_eq!((read.found, read.refused, read.fragment), (1, 0, 0));
        let mut got = with.clone();
        prop_assert!(read.take_out(&mut got));
        got.assert_sums();
        prop_assert_eq!(got.bytes, frame.bytes);
    }

    #[test]
    fn any_bytes_are_read_to_an_end(v6 in any::<bool>(), next in prop_oneof![Just(0_u8), Just(43), Just(44), Just(60), any::<u8>()],
        bytes in prop::collection::vec(prop_oneof![Just(0_u8), Just(60), Just(43), Just(44), Just(6), any::<u8>()], 0..20)) {
        let words: Vec<u8> = bytes.iter().flat_map(|byte| [*byte, byte.rotate_left(3) & 7, byte.wrapping_mul(5), *byte]).collect();
        let frame = plain(v6).with(next, if v6 { &words } else { &words[..words.len().min(40)] });
        // Every prefix as well.
        for len in 0..=frame.bytes.len() {
            let mut part = Frame { bytes: frame.bytes[..len].to_vec(), sums: Sums::Full };
            if let Some(read) = read(&part) && read.found == 1 {
                prop_assert!(read.at as usize <= frame.bytes.len() + 2048);
                read.take_out(&mut part);
            }
        }
    }
}

#[test]
fn a_packet_without_anything_is_plain() {
    for v6 in [false, true] {
        let read = read(&plain(v6)).unwrap();
        assert!(read.found == 1 && read.is_plain() && read.refused == 0);
        let mut other = plain(v6);
        other.bytes[if v6 { 20 } else { 23 }] = 17;
        assert!(super::tests::read(&other).is_none_or(|read| read.found != 1), "UDP");
    }
}

#[test]
fn options_of_ipv4_that_a_host_refuses() {
    assert!(!refused4(&[1, 1, 1, 0]));
    assert!(!refused4(&[7, 3, 4, 0]), "record route");
    assert!(!refused4(&[148, 4, 0, 0]), "router alert");
    for route in [131, 137] {
        assert!(refused4(&[route, 7, 4, 192, 0, 2, 1, 0]), "a source route");
        assert!(refused4(&[1, 1, 1, 1, 1, route, 3, 4]), "a source route behind padding");
        assert!(!refused4(&[0, route, 7, 4, 0, 0, 0, 0]), "nothing behind the end counts");
    }
    assert!(refused4(&[7, 5, 4, 0]), "longer than what is left");
    assert!(refused4(&[7, 1, 1, 1]) && refused4(&[7, 0, 1, 1]), "shorter than an option can be");
    assert!(refused4(&[1, 1, 1, 7]), "without its length");
}

#[test]
fn headers_of_ipv6_that_a_host_refuses() {
    let routing = |kind: u8, left: u8| vec![0, 0, kind, left, 0, 0, 0, 0];
    assert_eq!(refused6(&[(43, routing(0, 0))]), Some(false), "the end of a route");
    assert_eq!(refused6(&[(43, routing(0, 1))]), Some(true), "a route that goes on");
    for kind in [2, 3, 4] {
        assert_eq!(refused6(&[(43, routing(kind, 0))]), Some(true), "{kind}");
    }
    for (kind, refused) in [(0x05, false), (0x1e, false), (0x5e, true), (0x9e, true), (0xc2, true), (0xc9, true)] {
        for number in [0, 60] {
            let header = of_options(0, &[kind, 4, 0, 0, 0, 0]);
            assert_eq!(refused6(&[(number, header)]), Some(refused), "option {kind} of {number}");
        }
    }
    assert_eq!(
        refused6(&[(60, of_options(0, &[0x1e, 5, 0, 0, 0, 0]))]),
        Some(true),
        "an option longer than its header"
    );
    assert_eq!(refused6(&[(60, of_options(0, &[0; 6])), (0, of_options(0, &[0; 6]))]), None, "hop by hop, not first");
    assert_eq!(refused6(&[(51, of_options(0, &[0; 6]))]), None, "authentication");
    let fragment = |more: u8| vec![0, 0, 0, more, 0, 0, 0, 9];
    assert_eq!(refused6(&[(44, fragment(1)), (60, of_options(0, &[0; 6]))]), Some(true), "options in a fragment");
    assert_eq!(refused6(&[(44, fragment(0)), (60, of_options(0, &[0; 6]))]), Some(false), "not in fragments after all");
    assert_eq!(refused6(&[(44, fragment(1)), (44, fragment(1))]), None, "fragments of fragments");
}

#[test]
fn fragments_are_reported_with_their_offsets() {
    for v6 in [false, true] {
        let parts = plain(v6).fragments(0x1234, 8);
        assert_eq!(parts.len(), 4);
        for (i, part) in parts.iter().enumerate() {
            let read = read(part).unwrap();
            let more = u32::from(i < 3);
            assert_eq!(
                (read.found, read.fragment, read.id, read.offset, read.more),
                (1, 1, 0x1234, i as u32 * 8, more)
            );
            assert_eq!((read.extra, read.at), (0, if v6 { 62 } else { 34 }));
        }
    }
}
