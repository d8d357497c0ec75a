//! From one version of IP to the other.

use proptest::prelude::*;
use std::vec::Vec;

use super::super::*;
use super::frame::Sums;
use super::options::any_options;
use super::{any_headers, any_translation};
use crate::packet::segment;

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
        let (mut headers, t) = if v6 { (of_v6, to_v4) } else { (of_v4, to_v6) };
        headers.ip_options = 0;
        let sums = if partial { Sums::Partial } else { Sums::Full };
        let mut frame = headers.frame(&options.bytes(), &payload, sums);
        let read = segment(&frame).expect("a TCP segment");
        prop_assert!(translate_across(&mut frame, &read, &t));
        frame.assert_sums();

        // The TCP part is that of a translation that stays within the version, checksum aside.
        let mut within = headers.frame(&options.bytes(), &payload, sums);
        let stays = Translation { to: headers.flow, ..t };
        prop_assert!(translate(&mut within, &read, &stays));
        let after = segment(&frame).expect("a TCP segment");
        prop_assert_eq!(after.flow, t.to);
        prop_assert_eq!(after.v6, !v6);
        let (tcp, expected) = (&frame.bytes[after.tcp as usize + 4..], &within.bytes[read.tcp as usize + 4..]);
        let without_checksum = |tcp: &[u8]| -> Vec<u8> { [&tcp[..12], &tcp[14..]].concat() };
        prop_assert_eq!(without_checksum(tcp), without_checksum(expected));

        // Hop limit and traffic class go over.
        let (hops, class) = if v6 {
            (frame.bytes[22], frame.bytes[15])
        } else {
            (frame.bytes[21], frame.bytes[14] << 4 | frame.bytes[15] >> 4)
        };
        prop_assert_eq!((hops, class), (64, 0));
    }
}
