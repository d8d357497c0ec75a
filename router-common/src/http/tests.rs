//! The table of unusual request heads, each split in every way.

use std::vec::Vec;

use super::*;
use crate::common::drive::{HeadRun, cuts, halves, head_end, singly};
use crate::common::head_cases;

#[test]
fn every_row_has_its_outcome() {
    let wrong: Vec<_> = head_cases::all()
        .into_iter()
        .map(|case| (case.name, HeadRun::over([&case.bytes[..]]).outcome(), case.outcome))
        .filter(|(_, got, expected)| *got != **expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rows_have_names_of_their_own() {
    let mut names: Vec<_> = head_cases::all().into_iter().map(|case| case.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn every_row_has_one_outcome_however_tcp_cuts_it() {
    for case in head_cases::all() {
        let whole = HeadRun::over([&case.bytes[..]]);
        assert_eq!(HeadRun::over(singly(&case.bytes)), whole, "{} byte by byte", case.name);
        // The middle of a long head is one field value, so splits in it add no coverage.
        for at in cuts(case.bytes.len()).filter(|at| *at < 700 || at % 1009 == 0) {
            assert_eq!(HeadRun::over(halves(&case.bytes, at)), whole, "{} cut at {at}", case.name);
        }
    }
}

#[test]
fn every_prefix_of_a_good_head_is_incomplete() {
    for case in head_cases::all() {
        if !case.outcome.starts_with("complete") {
            continue;
        }
        let end = head_end(&case.bytes).expect(case.name);
        assert!(case.bytes[..end].ends_with(b"\r\n\r\n"), "{} ends with its empty line", case.name);
        for at in (0..end).filter(|at| *at < 700 || at % 1009 == 0) {
            let run = HeadRun::over([&case.bytes[..at]]);
            assert_eq!(run.progress, Progress::Incomplete, "{} of {at} bytes", case.name);
        }
    }
}

#[test]
fn each_byte_is_allowed_where_the_rfc_allows_it() {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let run = |before: &[u8], byte: u8, after: &[u8]| HeadRun::over([before, &[byte], after]).progress;
    for byte in 0..=u8::MAX {
        let rest = b"T / HTTP/1.1\r\nHost: a.test\r\n\r\n";
        assert_eq!(run(b"GE", byte, rest) == Progress::Complete, token(byte), "method {byte}");
        let rest = b" HTTP/1.1\r\nHost: a.test\r\n\r\n";
        let target = byte.is_ascii_graphic() && byte != b'#';
        assert_eq!(run(b"GET /", byte, rest) == Progress::Complete, target, "target {byte}");
        let name = run(b"GET / HTTP/1.1\r\nHost: a.test\r\nX", byte, b"Y: 1\r\n\r\n");
        assert_eq!(name == Progress::Complete, token(byte) || byte == b':', "name {byte}");
        let value = run(b"GET / HTTP/1.1\r\nHost: a.test\r\nX: 1", byte, b"2\r\n\r\n");
        let field_vchar = byte == b'\t' || (byte >= b' ' && byte != 0x7f);
        assert_eq!(value == Progress::Complete, field_vchar, "value {byte}");
        let host = run(b"GET / HTTP/1.1\r\nHost: a", byte, b"0\r\n\r\n");
        let uri_host = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
        assert_eq!(host == Progress::Complete, uri_host, "host {byte}");
    }
}

#[test]
fn what_follows_the_head_is_not_read() {
    let text = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let run = HeadRun::over([&[&text[..], b"\0\0\0"].concat()[..]]);
    assert_eq!((run.progress, run.parser.head().len as usize), (Progress::Complete, text.len()));
}

#[test]
fn statuses_are_those_of_the_table() {
    for (error, status) in [
        (HeadError::NotHttp, None),
        (HeadError::Method, Some(400)),
        (HeadError::Target, Some(400)),
        (HeadError::Version, Some(505)),
        (HeadError::LineEnd, Some(400)),
        (HeadError::HeaderName, Some(400)),
        (HeadError::HeaderValue, Some(400)),
        (HeadError::Fold, Some(400)),
        (HeadError::NoHost, Some(400)),
        (HeadError::DuplicateHost, Some(400)),
        (HeadError::BadHost, Some(400)),
        (HeadError::TooLarge, Some(431)),
    ] {
        assert_eq!(error.status(), status, "{error:?}");
    }
}

#[test]
fn nothing_is_read_until_a_byte_that_counts_is() {
    for (text, empty) in
        [("", true), ("\r\n", true), ("\r\n\r\n", true), ("\r", false), ("\r\nG", false), ("GET", false)]
    {
        let mut parser = HeadParser::default();
        assert_eq!(parser.feed(&mut UnreadHost, text.as_bytes()), Progress::Incomplete);
        assert_eq!(parser.is_empty(), empty, "{text:?}");
    }
}
