//! Consecutive messages, and rejected heads.

use super::*;

/// The lengths of the messages in `bytes`, or the status of the first rejected one.
fn messages(bytes: &[u8]) -> Result<Vec<usize>, Option<StatusCode>> {
    let mut gate = MessageFraming::new(32_768);
    let (mut lengths, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let head = match gate.head(rest, 0) {
            HeadStep::Complete(length) => length,
            HeadStep::Refused(status) => return Err(status),
            HeadStep::Incomplete => panic!("an incomplete head in {bytes:?}"),
        };
        let body = if gate.at_head() { 0 } else { gate.body(&rest[head..]).map_err(|_| None)? };
        assert!(gate.at_head(), "an incomplete body in {bytes:?}");
        lengths.push(head + body);
        rest = &rest[head + body..];
    }
    Ok(lengths)
}

fn post(fields: &str, body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n{body}")
}

#[test]
fn messages_follow_each_other() {
    let get = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let sized = post("Content-Length: 5\r\n", "GET /");
    let chunked = post("Transfer-Encoding: Chunked\r\n", "3\r\nabc\r\n0\r\n\r\n");
    let empty = post("content-length: 0\r\n", "");
    let all = [get, &sized, &chunked, &empty, get];
    let lengths: Vec<usize> = all.iter().map(|message| message.len()).collect();
    assert_eq!(messages(all.concat().as_bytes()), Ok(lengths));
}

#[test]
fn a_head_may_come_byte_by_byte() {
    let head = post("Content-Length: 2\r\n", "");
    let mut gate = MessageFraming::new(32_768);
    for seen in 0..head.len() - 1 {
        assert_eq!(gate.head(&head.as_bytes()[..=seen], seen), HeadStep::Incomplete);
    }
    assert_eq!(gate.head(head.as_bytes(), head.len() - 1), HeadStep::Complete(head.len()));
    assert_eq!(gate.body(b"a"), Ok(1));
    assert_eq!(gate.body(b"bGET"), Ok(1));
    assert!(gate.at_head());
}

#[test]
fn two_ways_to_frame_a_body_are_refused() {
    let bad = Err(Some(StatusCode::BAD_REQUEST));
    let cases = [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nContent-Length: 3\r\n",
        "Content-Length: 3, 3\r\n",
        "Content-Length: +3\r\n",
        "Content-Length: 0x3\r\n",
        "Content-Length:\r\n",
        "Content-Length: 18446744073709551617\r\n",
        "Content-Length: 9223372036854775808\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ];
    for fields in cases {
        assert_eq!(messages(post(fields, "").as_bytes()), bad, "{fields}");
    }
    for coding in ["xchunked", "chunked, identity", "gzip, chunked", "identity"] {
        let fields = format!("Transfer-Encoding: {coding}\r\n");
        assert_eq!(messages(post(&fields, "").as_bytes()), Err(Some(StatusCode::NOT_IMPLEMENTED)), "{coding}");
    }
    let old = "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(messages(old.as_bytes()), bad);
}

#[test]
fn the_shared_parser_decides_about_heads() {
    let cases = [
        ("GET / HTTP/1.1\nHost: a.test\n\n", Some(400)),
        ("GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n", Some(400)),
        ("GET / HTTP/2.0\r\nHost: a.test\r\n\r\n", Some(505)),
        ("\u{16}\u{3}\u{1}", None),
    ];
    for (bytes, status) in cases {
        let refused = messages(bytes.as_bytes()).unwrap_err();
        assert_eq!(refused.map(|status| status.as_u16()), status, "{bytes:?}");
    }
}

#[test]
fn what_is_too_large_is_distinguished() {
    let get = |target: usize, value: usize, fields: usize| {
        let (target, value) = ("/".repeat(target), "x".repeat(value));
        format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nX: {value}\r\n{}\r\n", "Y: z\r\n".repeat(fields))
    };
    let cases = [
        ((1, 30_000, 0), Ok(())),
        ((1, 33_000, 0), Err(431)),
        ((1, 100_000, 0), Err(431)),
        ((1, 1, MAX_FIELDS - 2), Ok(())),
        ((1, 1, MAX_FIELDS - 1), Err(431)),
        ((16_384, 1, 0), Ok(())),
        ((16_385, 1, 0), Err(414)),
        ((70_000, 1, 0), Err(414)),
    ];
    for ((target, value, fields), expected) in cases {
        let head = get(target, value, fields);
        let outcome = messages(head.as_bytes()).map(|_| ()).map_err(|status| status.unwrap().as_u16());
        assert_eq!(outcome, expected, "{target} {value} {fields}");
    }
    // As soon as it is detected, not only at the end of the head.
    let mut gate = MessageFraming::new(1000);
    let begun = get(1, 2000, 0);
    assert_eq!(gate.head(&begun.as_bytes()[..900], 0), HeadStep::Incomplete);
    let refused = HeadStep::Refused(Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
    assert_eq!(gate.head(&begun.as_bytes()[..1001], 900), refused);
}

#[test]
fn names_with_the_letters_of_framing_are_refused() {
    for name in ["Content_Length", "contentlength", "Transfer--Encoding", "~transfer.encoding~", "TRANSFER_ENCODING"] {
        assert!(looks_like_framing(name.as_bytes()), "{name}");
        let fields = format!("X: y\r\n{name}: 3\r\n");
        assert_eq!(messages(post(&fields, "").as_bytes()), Err(Some(StatusCode::BAD_REQUEST)), "{name}");
    }
    for name in [
        "Content-Length",
        "TRANSFER-ENCODING",
        "X-Content-Length",
        "Content-Length-2",
        "Content-Lengt",
        "Cache-Control",
    ] {
        assert!(!looks_like_framing(name.as_bytes()), "{name}");
    }
}

#[test]
fn later_minor_versions_are_read_as_ours() {
    for version in ["HTTP/1.2", "HTTP/1.9"] {
        let head = post("Transfer-Encoding: chunked\r\n", "").replace("HTTP/1.1", version);
        let ours = head.replace(version, "HTTP/1.1").into_bytes();
        // In one part, and split at every byte.
        for cut in 0..head.len() {
            let mut gate = MessageFraming::new(32_768);
            assert_eq!(gate.head(&head.as_bytes()[..cut], 0), HeadStep::Incomplete, "{cut}");
            assert_eq!(gate.head(head.as_bytes(), cut), HeadStep::Complete(head.len()), "{cut}");
            assert_eq!(gate.take_rewritten(), Some(ours.clone()));
            assert_eq!(gate.take_rewritten(), None);
            assert!(!gate.at_head(), "chunked is known");
        }
    }
    for version in ["HTTP/1.", "HTTP/1.10", "HTTP/1.21", "HTTP/1.:", "HTTP/2.2", "HTTP/0.9", "http/1.2", "HTTP/1.2 "] {
        let head = post("", "").replace("HTTP/1.1", version);
        assert_eq!(messages(head.as_bytes()), Err(Some(StatusCode::HTTP_VERSION_NOT_SUPPORTED)), "{version}");
    }
}

#[test]
fn targets_that_hyper_cannot_read_are_escaped_or_refused() {
    let get = |target: &str| format!("GET {target} HTTP/1.2\r\nHost: a.test\r\nX: \"<>`\r\n\r\n");
    let mut gate = MessageFraming::new(32_768);
    let head = get("/<a>?q={\"a\":1}");
    assert_eq!(gate.head(head.as_bytes(), 0), HeadStep::Complete(head.len()));
    let ours = get("/%3Ca%3E?q={%22a%22:1}").replace("HTTP/1.2", "HTTP/1.1").into_bytes();
    assert_eq!(gate.take_rewritten(), Some(ours));
    for served in ["http://a.test/?\"", "a.test", "*", "/a:b", "//"] {
        let lengths = messages(get(served).as_bytes());
        assert_eq!(lengths, Ok(vec![get(served).len()]), "{served}");
    }
    for refused in ["a/b", "a:b:c", "http:///", "http://<a>/", "http://a.test:b:c/"] {
        assert_eq!(messages(get(refused).as_bytes()), Err(Some(StatusCode::BAD_REQUEST)), "{refused}");
    }
    // A target that exceeds the limit only when it is escaped is rejected as well.
    let target = format!("/?{}", "\"".repeat(6_000));
    assert_eq!(messages(get(&target).as_bytes()), Err(Some(StatusCode::URI_TOO_LONG)));
    let mut small = MessageFraming::new(1000);
    let refused = HeadStep::Refused(Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
    assert_eq!(small.head(get(&format!("/?{}", "\"".repeat(400))).as_bytes(), 0), refused);
}
