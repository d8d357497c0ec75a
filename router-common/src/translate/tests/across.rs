//! Translation from one IP version to the other.

use proptest::prelude::*;
use std::vec::Vec;

use super::super::*;
use super::frame::Sums;
use super::options::any_options;
use super::{any_headers, any_translation};
use crate::packet::{Packet, segment};

proptest! {
    #[test]
    fn what_arrives_is_what_translation_within_a_version_would_say_with_the_other_header(
        v6 in any::<bool>(),
        (of_v4, of_v6) in (any_headers(false), any_headers(true)),
        (to_v4, to_v6) in (any_translation(false), any_translation(true)),
        options in any_options(),
        payload in prop::collection::vec(any::<u8>(), 0..100),
        partial in any::<bool>(),
    ) {
        let (headers, t) = if v6 { (of_v6, to_v4) } else { (of_v4, to_v6) };
        let sums = if partial { Sums::Partial } else { Sums::Full };
        let mut frame = headers.frame(&options.bytes(), &payload, sums);
        let read = segment(&frame).expect("a TCP segment");
        prop_assert!(translate_across(&mut frame, &read, &t));
        frame.assert_sums();

        // Apart from the checksum, the TCP part equals that of a translation within the version.
        let mut within = headers.frame(&options.bytes(), &payload, sums);
        let stays = FlowTranslation { to: headers.flow, ..t };
        prop_assert!(translate(&mut within, &read, &stays));
        let after = segment(&frame).expect("a TCP segment");
        prop_assert_eq!(after.flow, t.to);
        prop_assert_eq!(after.v6, !v6);
        let (tcp, expected) = (&frame.bytes[after.tcp as usize + 4..], &within.bytes[read.tcp as usize + 4..]);
        let without_checksum = |tcp: &[u8]| -> Vec<u8> { [&tcp[..12], &tcp[14..]].concat() };
        prop_assert_eq!(without_checksum(tcp), without_checksum(expected));

        // Hop limit and traffic class are copied.
        let (hops, class) = if v6 {
            (frame.bytes[22], frame.bytes[15])
        } else {
            (frame.bytes[21], frame.bytes[14] << 4 | frame.bytes[15] >> 4)
        };
        prop_assert_eq!((hops, class), (64, 0));
    }
}

/// A packet of unlimited length whose headers are written and not read.
struct Written([u8; 64]);

impl Packet for Written {
    fn load<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        (&self.0[..]).load(offset)
    }

    fn len(&self) -> u32 {
        u32::MAX
    }
}

impl PacketMut for Written {
    fn store<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool {
        self.0[offset as usize..][..N].copy_from_slice(bytes);
        true
    }

    fn store_counted<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool {
        self.store(offset, bytes)
    }

    fn fix_ip_checksum(&mut self, _: u32, _: u32) -> bool {
        false
    }

    fn fix_tcp_checksum(&mut self, _: u32, _: u32, _: bool) -> bool {
        false
    }

    fn change_family(&mut self, _: bool) -> bool {
        true
    }

    fn take_out(&mut self, _: bool, _: u32) -> bool {
        false
    }
}

#[test]
fn headers_of_every_length_have_that_length_and_a_true_checksum() {
    let to = FlowKey {
        source: crate::maps::mapped([192, 0, 2, 1]),
        destination: crate::maps::mapped([255, 255, 255, 254]),
        source_port: 1,
        destination_port: 2,
    };
    let mut packet = Written([0; 64]);
    let at = ETHERNET as usize;
    let length = |packet: &Written, place: usize| u16::from_be_bytes([packet.0[at + place], packet.0[at + place + 1]]);
    for tcp_len in (0..=0xffff + 40).chain([100_000, 0x1_0000 + 20]) {
        let short = |bytes: u32| u16::try_from(bytes).unwrap_or(0);
        assert!(write_ip4(&mut packet, &to, tcp_len, 64, 0));
        assert_eq!(length(&packet, 2), short(tcp_len + 20), "{tcp_len}");
        let sum: u32 = (0..20).step_by(2).map(|place| u32::from(length(&packet, place))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "{tcp_len}");
        assert!(write_ip6(&mut packet, &to, tcp_len, 64, 0));
        assert_eq!(length(&packet, 4), short(tcp_len), "{tcp_len}");
    }
}
