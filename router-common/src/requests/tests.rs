//! Random streams, split at random, in order and reordered: a connection must end with the segment that makes its end
//! certain, and not earlier.

use proptest::prelude::*;
use std::vec::Vec;

use super::*;
use crate::common::streams::{Connection, OWN, SegmentOutcome, Stream, in_any_order, in_order, stream, tempting};
use crate::hostname::{HostBuilder, field_text};
use crate::http::{HeadParser, Progress};

/// A connection as the kernel program tracks it.
struct Followed {
    judged: u32,
    content: ContentTracker,
    parser: HeadParser,
    host: HostBuilder,
}

impl Followed {
    /// State after the first head, which ends before a sequence number.
    fn new(stream: &Stream, begin: u32) -> Followed {
        let (mut parser, mut host) = (HeadParser::new(), HostBuilder::new());
        assert_eq!(parser.feed(&mut host, &stream.bytes[..stream.first]), Progress::Complete);
        let content = content(&parser.head());
        Followed { judged: begin, content, parser: HeadParser::new(), host: HostBuilder::new() }
    }
}

impl Connection for Followed {
    fn segment(&mut self, seq: u32, bytes: &[u8], acked: u32) -> SegmentOutcome {
        let len = bytes.len() as u32;
        let quick = is_content(self.judged, &self.content, seq.wrapping_add(len));
        let from = match place(&mut self.judged, &mut self.content, acked, seq, len) {
            SegmentPosition::Passes => return SegmentOutcome::Passes,
            _ if quick => panic!("what is content is not looked at"),
            SegmentPosition::Early => return SegmentOutcome::Early,
            SegmentPosition::From(from) => from,
        };
        let (mut content, mut parser, mut host) = (self.content, self.parser, self.host);
        content.pass(content.free());
        let mut left = &bytes[from as usize..];
        while !left.is_empty() {
            if !content.is_over() {
                match content.scan(left) {
                    Ok(taken) => left = &left[taken..],
                    Err(_) => return SegmentOutcome::Reset,
                }
                continue;
            }
            let before = parser.head().len;
            match parser.feed(&mut host, left) {
                Progress::Incomplete => break,
                Progress::Invalid(_) => return SegmentOutcome::Reset,
                Progress::Complete => {}
            }
            let head = parser.head();
            if !can_follow(&head) || field_text(&host.exact) != OWN {
                return SegmentOutcome::Reset;
            }
            left = &left[(head.len - before) as usize..];
            content = super::content(&head);
            (parser, host) = (HeadParser::new(), HostBuilder::new());
        }
        (self.content, self.parser, self.host) = (content, parser, host);
        self.judged = seq.wrapping_add(len);
        SegmentOutcome::Passes
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_connection_ends_exactly_where_it_must(seed in any::<u64>()) {
        in_order(seed, 3000, Followed::new);
    }

    #[test]
    fn nothing_that_must_not_arrives_in_whatever_order(seed in any::<u64>()) {
        in_any_order(seed, 2000, Followed::new);
    }
}

#[test]
fn streams_of_every_kind_are_drawn() {
    let streams: Vec<_> = (1..500).map(stream).collect();
    let ends = streams.iter().filter(|stream| stream.end.is_some()).count();
    assert!((100..400).contains(&ends), "{ends} of them must end");
    let chunked = streams.iter().filter(|stream| stream.bytes.windows(9).any(|bytes| bytes == b":chunked\r")).count();
    assert!(chunked > 50, "{chunked} of them have chunks");
}

#[test]
fn content_longer_than_sequence_numbers_is_passed_over() {
    let (mut judged, mut content) = (u32::MAX - 5, ContentTracker::sized(10 << 32));
    let mut seq = judged;
    let mut sent = 0_u64;
    while sent < 10 << 32 {
        let acked = seq;
        for _ in 0..3 {
            let len = (1_u64 << 28).min((10 << 32) - sent) as u32;
            if !is_content(judged, &content, seq.wrapping_add(len)) {
                assert_eq!(
                    place(&mut judged, &mut content, acked, seq, len),
                    SegmentPosition::Passes,
                    "after {sent} bytes"
                );
            }
            seq = seq.wrapping_add(len);
            sent += u64::from(len);
        }
    }
    assert_eq!(place(&mut judged, &mut content, seq, seq, 1), SegmentPosition::From(0));
    assert!(content.is_over());
}

#[test]
fn of_a_gap_only_content_comes_through() {
    let mut judged = 100;
    let mut content = ContentTracker::sized(50);
    let mut at = |seq, len| place(&mut judged, &mut content, 0x8000_0000, seq, len);
    assert_eq!(at(120, 30), SegmentPosition::Passes, "content behind a gap");
    assert_eq!(at(90, 10), SegmentPosition::Passes, "sent again");
    assert_eq!(at(120, 31), SegmentPosition::From(30), "the end of content, and a byte behind it");
    assert_eq!(at(151, 1), SegmentPosition::Early, "a byte is missing that may begin a head");
}

#[test]
fn an_endpoint_cannot_acknowledge_what_was_not_looked_at() {
    let (mut judged, mut content) = (100, ContentTracker::sized(50));
    let whole = tempting(40);
    assert_eq!(place(&mut judged, &mut content, 1000, 150, whole.len() as u32), SegmentPosition::From(0));
    assert_eq!((judged, content), (150, ContentTracker::default()));
}
