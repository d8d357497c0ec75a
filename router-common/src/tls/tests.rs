//! The table of unusual ClientHellos, each split in every way that TCP and the record layer allow.

use std::vec::Vec;

use super::*;
use crate::common::drive::{HelloRun, cuts, halves, hello_end, singly};
use crate::common::hello_build::{HelloBuild, SERVER_NAME, host_name, record, records, unframed};
use crate::common::hello_cases;

#[test]
fn every_row_has_its_outcome() {
    let wrong: Vec<_> = hello_cases::all()
        .into_iter()
        .map(|case| (case.name, HelloRun::over([&case.bytes[..]]).outcome(), case.outcome))
        .filter(|(_, got, expected)| *got != **expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rows_have_names_of_their_own() {
    let mut names: Vec<_> = hello_cases::all().into_iter().map(|case| case.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn every_row_has_one_outcome_however_tcp_cuts_it() {
    for case in hello_cases::all() {
        let whole = HelloRun::over([&case.bytes[..]]);
        assert_eq!(HelloRun::over(singly(&case.bytes)), whole, "{} byte by byte", case.name);
        for at in cuts(case.bytes.len()) {
            assert_eq!(HelloRun::over(halves(&case.bytes, at)), whole, "{} cut at {at}", case.name);
        }
    }
}

#[test]
fn every_prefix_of_a_good_hello_is_incomplete() {
    for case in hello_cases::all() {
        if !case.outcome.starts_with("complete") {
            continue;
        }
        let end = hello_end(&case.bytes).expect(case.name);
        let message = unframed(&case.bytes);
        let trailing = message.len() - (4 + u32::from_be_bytes([0, message[1], message[2], message[3]]) as usize);
        assert_eq!(end + trailing, case.bytes.len(), "{} is complete with its last byte, not before", case.name);
        for at in cuts(end - 1) {
            let run = HelloRun::over([&case.bytes[..at]]);
            assert_eq!(run.progress, Progress::Incomplete, "{} of {at} bytes", case.name);
        }
    }
}

#[test]
fn a_hello_of_post_quantum_size_may_change_records_at_every_byte() {
    let message = HelloBuild::named("a.test").with_first(0x1a1a, std::vec![7; 1400]).message();
    assert!(message.len() > 1500);
    for at in 1..message.len() {
        let bytes = [record(&message[..at]), record(&message[at..])].concat();
        assert_eq!(HelloRun::over([&bytes[..]]).outcome(), "complete name=a.test alpn=-", "record ends at {at}");
        let run = HelloRun::over(halves(&bytes, at + 7));
        assert_eq!(run.outcome(), "complete name=a.test alpn=-", "record ends at {at}, segment in the next header");
    }
    for size in 1..200 {
        let bytes = records(&message, size);
        assert_eq!(HelloRun::over(singly(&bytes)).outcome(), "complete name=a.test alpn=-", "records of {size}");
    }
}

#[test]
fn a_first_byte_tells_tls_from_anything_else() {
    for byte in 0..=u8::MAX {
        let expected = match byte {
            22 => Progress::Incomplete,
            20..=23 => Progress::Invalid(HelloError::NotHandshake),
            _ => Progress::Invalid(HelloError::NotTls),
        };
        assert_eq!(HelloRun::over([&[byte][..]]).progress, expected, "{byte}");
    }
}

#[test]
fn a_host_name_has_the_bytes_that_hostname_allows_and_no_others() {
    for byte in 0..=u8::MAX {
        let bytes = HelloBuild::new().with(SERVER_NAME, host_name(&[b'a', byte, b'z'])).bytes();
        let good = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let run = HelloRun::over([&bytes[..]]);
        let expected = if good { Progress::Complete } else { Progress::Invalid(HelloError::BadName) };
        assert_eq!(run.progress, expected, "{byte}");
    }
}

#[test]
fn a_change_of_any_length_byte_never_gives_another_name() {
    let bytes = HelloBuild::named("a.test").with(ALPN_NUMBER, std::vec![0, 3, 2, b'h', b'2']).bytes();
    for at in 5..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            let run = HelloRun::over([&changed[..]]);
            // Changed bytes of the name may change the name; its positions are those of its text.
            let in_name = changed[at..].len() <= bytes.len() && find(&bytes, b"a.test").contains(&at);
            if run.progress == Progress::Complete && run.parser.hello().sni == Sni::Name && !in_name {
                assert_eq!(crate::hostname::field_text(&run.host.exact), "a.test", "bit {bit} of byte {at}");
            }
        }
    }
}

#[test]
fn alerts_are_those_of_the_table() {
    for (error, alert) in [
        (HelloError::NotTls, None),
        (HelloError::NotHandshake, None),
        (HelloError::RecordVersion, Some(70)),
        (HelloError::RecordOverflow, Some(22)),
        (HelloError::EmptyRecord, Some(10)),
        (HelloError::NotClientHello, Some(10)),
        (HelloError::TooLarge, Some(50)),
        (HelloError::Length, Some(50)),
        (HelloError::DuplicateSni, Some(47)),
        (HelloError::BadName, Some(50)),
    ] {
        assert_eq!(error.alert(), alert, "{error:?}");
    }
}

#[test]
fn a_hello_of_usual_size_takes_few_steps() {
    let bytes = HelloBuild::named("www.example.test").with_first(0x0033, std::vec![9; 1250]).bytes();
    let (mut parser, mut host) = (HelloParser::new(), HostBuilder::new());
    let (mut at, mut steps) = (0, 0);
    while at < bytes.len() {
        let step = parser.step(&mut host, next_of(&bytes[at..]), (bytes.len() - at) as u32);
        at += step.consumed as usize;
        steps += 1;
    }
    assert!(steps < 100, "{steps} steps: the kernel's loop bound counts on far fewer than one per byte");
}

const ALPN_NUMBER: u16 = 16;

fn find(bytes: &[u8], text: &[u8]) -> core::ops::Range<usize> {
    let start = bytes.windows(text.len()).position(|window| window == text).expect("the text is there");
    start..start + text.len()
}
