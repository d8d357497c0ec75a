//! TCP options as real stacks write them, in unusual layouts, and truncated.

use std::vec::Vec;

use super::*;
use crate::packet::segment;

/// An Ethernet frame with a TCP header with these options.
fn packet(options: &[u8]) -> Vec<u8> {
    assert!(options.len().is_multiple_of(4) && options.len() <= 40);
    let mut bytes = Vec::from([0; 12]);
    bytes.extend([0x08, 0x00]);
    let total = 20 + 20 + options.len() as u16;
    bytes.extend([0x45, 0]);
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend([0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 2]);
    bytes.extend([((5 + options.len() / 4) as u8) << 4, 0x02, 0, 0, 0, 0, 0, 0]);
    bytes.extend(options);
    bytes
}

/// Reads them with every reader, and compares the results.
fn read_of(options: &[u8]) -> TcpOptions {
    let mut reader =
        OptionReader { bytes: [0; 64], len: options.len() as u32, at: 0, begin: 54, found: TcpOptions::default() };
    reader.bytes[..options.len()].copy_from_slice(options);
    let steps = (0..=MAX_OPTIONS).take_while(|_| reader.step()).count();
    assert!(steps <= MAX_OPTIONS as usize, "the reading has an end");
    let bytes = packet(options);
    let packet = &bytes[..];
    let segment = segment(&packet).expect("a TCP segment");
    for found in [only_timestamps(&packet, &segment), all_of_syn(&packet, &segment)].into_iter().flatten() {
        assert_eq!(found, reader.found);
    }
    reader.found
}

#[test]
fn what_a_syn_offers_is_read_back() {
    for present in 0..8 {
        let present = present & (OPTION_TIMESTAMPS | OPTION_SACK | OPTION_SCALE);
        let read = read_of(&of_syn(1460, present, 0x0102_0304, 7));
        assert_eq!((read.mss, read.mss_at, read.present), (1460, 56, present));
        assert_eq!(read.tsval, if present & OPTION_TIMESTAMPS != 0 { 0x0102_0304 } else { 0 });
        assert_eq!(read.shift, if present & OPTION_SCALE != 0 { 7 } else { 0 });
    }
}

#[test]
fn a_usual_syn_is_read_at_once() {
    let of = |options: &[u8]| {
        let bytes = packet(options);
        let packet = &bytes[..];
        all_of_syn(&packet, &segment(&packet).expect("a TCP segment"))
    };
    for shift in [0, 7, 14, 200] {
        let usual = of_syn(1460, OPTION_TIMESTAMPS | OPTION_SACK | OPTION_SCALE, 0xfeff_0001, shift);
        assert_eq!(of(&usual), Some(read_of(&usual)));
        // Another byte in any position that is not a value makes it another layout.
        for place in [0, 1, 4, 5, 6, 7, 16, 17, 18] {
            let mut other = usual;
            other[place] ^= 0x40;
            assert_eq!(of(&other), None, "byte {place}");
            read_of(&other);
        }
    }
    assert_eq!(of(&of_syn(1460, OPTION_SACK | OPTION_SCALE, 0, 7)), None);
}

#[test]
fn timestamps_are_read_in_any_layout() {
    let (value, echo) = (0xfeff_0001, 0x8000_0000);
    let aligned = of_timestamps(value, echo);
    let mut late = [1; 16];
    late[3..13].copy_from_slice(&aligned[2..]);
    late[13] = 0;
    for read in [read_of(&aligned), read_of(&late)] {
        assert_eq!((read.tsval, read.tsecr, read.present), (value, echo, OPTION_TIMESTAMPS));
    }
}

#[test]
fn a_shift_above_fourteen_counts_as_fourteen() {
    assert_eq!(read_of(&[3, 3, 200, 0]).shift, 14);
}

#[test]
fn an_option_whose_length_is_behind_the_end_ends_the_reading() {
    for behind in 0..=u8::MAX {
        let mut reader = OptionReader { bytes: [0; 64], len: 1, at: 0, begin: 54, found: TcpOptions::default() };
        (reader.bytes[0], reader.bytes[1]) = (MSS, behind);
        assert!(!reader.step(), "{behind}");
        assert_eq!(reader.found, TcpOptions::default());
    }
}

#[test]
fn timestamps_alone_are_read_at_once() {
    let options = [NOP, NOP, TIMESTAMPS, 10, 1, 2, 3, 4, 5, 6, 7, 8];
    let bytes = packet(&options);
    let packet = &bytes[..];
    let at_once = only_timestamps(&packet, &segment(&packet).expect("a TCP segment"));
    assert_eq!(at_once, Some(read_of(&options)));
}

#[test]
fn an_option_of_another_length_or_kind_says_nothing() {
    let known = [(MSS, 4), (SCALE, 3), (SACK_PERMITTED, 2), (TIMESTAMPS, 10)];
    for (kind, length) in (2..=u8::MAX).flat_map(|kind| (2..=12).map(move |length| (kind, length))) {
        let mut options = [NOP; 12];
        (options[0], options[1]) = (kind, length);
        options[2..usize::from(length)].fill(7);
        let says = read_of(&options) != TcpOptions::default();
        assert_eq!(says, known.contains(&(kind, length)), "kind {kind}, {length} bytes");
    }
}

#[test]
fn malformed_options_end_the_reading() {
    for options in [[2, 0, 5, 180], [2, 1, 5, 180], [2, 40, 5, 180], [8, 10, 0, 0], [0, 2, 4, 1], [1, 1, 1, 2]] {
        assert_eq!(read_of(&options), TcpOptions::default(), "{options:?}");
    }
    // Earlier options are kept.
    assert_eq!(read_of(&[2, 4, 5, 180, 3, 0, 7, 0]).mss, 1460);
}

proptest::proptest! {
    #[test]
    fn no_options_panic(options in proptest::collection::vec(proptest::num::u8::ANY, 10)) {
        let mut padded = options;
        padded.resize(12, 0);
        read_of(&padded);
        padded.resize(40, 1);
        read_of(&padded);
    }
}
