//! Fragments translated one by one equal the fragments of the translated packet.

use proptest::prelude::*;
use std::vec::Vec;

use super::super::*;
use super::frame::{Frame, Headers, Sums};
use super::options::any_options;
use super::{any_headers, any_translation, translated};
use crate::ip_extensions::Extensions;
use crate::packet::{read_fragment, segment};

/// The kernel program's work on a fragment, given the connection's addresses.
fn carried(frame: &Frame, headers: &Headers, t: &FlowTranslation, id: u32) -> Frame {
    let mut frame = frame.clone();
    let mut extensions = Extensions::default();
    assert!(extensions.begin(&frame));
    while extensions.step(&frame) {}
    assert_eq!((extensions.found, extensions.fragment, extensions.refused), (1, 1, 0));
    assert!(extensions.take_out(&mut frame));
    if extensions.offset == 0 {
        let mut read = segment(&&headers.frame(&[], &[], Sums::Full).bytes[..]).expect("a TCP segment");
        read_fragment(&frame, headers.v6, &mut read).expect("a first fragment");
        assert_eq!(read.flow, headers.flow);
        assert!(translate(&mut frame, &read, t));
    } else {
        assert!(translate_later(&mut frame, headers.v6, &headers.flow, &t.to));
    }
    assert!(identify(&mut frame, headers.v6, id));
    frame.assert_fragment_sums();
    frame
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn parts_are_parts_of_the_whole(
        (headers, t) in any::<bool>().prop_flat_map(|v6| (any_headers(v6), any_translation(v6))),
        options in any_options(),
        payload in prop::collection::vec(any::<u8>(), 160..600),
        complete in any::<bool>(),
        (id, new_id) in any::<(u32, u32)>(),
        eights in 8..20_usize,
        extra in 0..3_usize,
    ) {
        let sums = if complete { Sums::Complete(0) } else { Sums::Full };
        let whole = headers.frame(&options.bytes(), &payload, sums);
        let expected = translated(&whole, &t).fragments(new_id, eights * 8);
        prop_assert!(expected.len() > 1);
        for (part, expected) in whole.fragments(id, eights * 8).iter().zip(expected) {
            // With options, or an options header before the fragment header: each fragment has them.
            let part = match (extra, headers.v6) {
                (0, _) => part.clone(),
                (words, false) => part.with(0, &std::vec![1; words * 4]),
                (eights, true) => {
                    let mut between = std::vec![44, (eights - 1) as u8, 1, (eights * 8 - 4) as u8];
                    between.resize(eights * 8, 0);
                    part.with(60, &between)
                }
            };
            prop_assert_eq!(carried(&part, &headers, &t, new_id).bytes, expected.bytes);
        }
    }

    #[test]
    fn a_first_fragment_without_the_whole_tcp_header_is_none(v6 in any::<bool>(), words in 0..11_usize) {
        let headers = Headers { v6, flow: super::changing_all().to, flags: ACK, ..Headers::default() };
        let whole = headers.frame(&std::vec![1; words * 4], &[7; 100], Sums::Full);
        let mut read = segment(&whole).expect("a TCP segment");
        for size in [8, 16, 24, 32, 40, 48, 56, 64] {
            let first: Vec<Frame> = whole.fragments(1, size);
            let all = size >= 20 + words * 4;
            prop_assert_eq!(read_fragment(&first[0], v6, &mut read).is_ok(), all, "{} of {} words", size, words);
        }
    }
}
