//! How heads determine their content's end, field by field.

use std::format;

use super::*;
use crate::http::{HeadParser, Progress, RequestHead, UnreadHost};

fn head(line: &str, fields: &str) -> RequestHead {
    let text = format!("{line}\r\n{fields}Host: a.test\r\n\r\n");
    let mut parser = HeadParser::new();
    assert_eq!(parser.feed(&mut UnreadHost, text.as_bytes()), Progress::Complete, "{text:?}");
    parser.head()
}

#[test]
fn one_way_to_frame_the_content_is_clear() {
    let cases = [
        ("", Framing::Sized, 0),
        ("Content-Length: 0\r\n", Framing::Sized, 0),
        ("content-LENGTH:\t 17 \r\n", Framing::Sized, 17),
        ("Content-Length: 5000000000000000000\r\n", Framing::Sized, 5_000_000_000_000_000_000),
        ("Transfer-Encoding: chunked\r\n", Framing::Chunked, 0),
        ("TRANSFER-encoding:CHUNKED\t\r\n", Framing::Chunked, 0),
        // Other fields whose names partly have the same letters.
        ("X-Content-Length: 5\r\nContent-Lengths: 5\r\nContent-Lengt: 5\r\n", Framing::Sized, 0),
        ("Accept-Encoding: chunked\r\nTE: chunked\r\nContent-Encoding: gzip\r\n", Framing::Sized, 0),
        ("Content-Type: a\r\nContent-Language: b\r\nTransfer-Encodings: chunked\r\n", Framing::Sized, 0),
        ("Expect: 100-continue\r\n", Framing::Sized, 0),
    ];
    for (fields, framing, length) in cases {
        let found = head("POST / HTTP/1.1", fields);
        assert_eq!((found.framing, found.length), (framing, length), "{fields:?}");
    }
    for method in ["GET", "HEAD", "TRACE", "OPTIONS"] {
        let found = head(&format!("{method} / HTTP/1.1"), "Content-Length: 0\r\n");
        assert_eq!((found.framing, found.length), (Framing::Sized, 0), "{method}");
    }
}

#[test]
fn what_readers_differ_on_is_unclear() {
    let values = ["", "+5", "-5", "05", "00", "0x5", "5 5", "5, 5", "5,5", "5;", "a", "5\u{b2}", "5\t5"];
    for value in values.into_iter().chain(["18446744073709551621", "99999999999999999999999999"]) {
        assert_eq!(
            head("POST / HTTP/1.1", &format!("Content-Length: {value}\r\n")).framing,
            Framing::Unclear,
            "{value:?}"
        );
    }
    for value in
        ["", "xchunked", "chunkedx", "chunke", "chunked, identity", "identity", "\"chunked\"", "chunked chunked"]
    {
        let fields = format!("Transfer-Encoding: {value}\r\n");
        assert_eq!(head("POST / HTTP/1.1", &fields).framing, Framing::Unclear, "{value:?}");
    }
    for fields in [
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 0\r\nX: y\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        "Expect: 100-continue\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nexpect: nothing\r\n",
    ] {
        assert_eq!(head("POST / HTTP/1.1", fields).framing, Framing::Unclear, "{fields:?}");
    }
    let names =
        ["ContentLength", "Content_Length", "Content--Length", "Content-Length-", "-Content-Length", "_content-length"];
    for name in names.into_iter().chain(["C-ontentLength", "Content-L.ength", "TransferEncoding", "Transfer_Encoding"])
    {
        assert_eq!(head("POST / HTTP/1.1", &format!("{name}: 5\r\n")).framing, Framing::Unclear, "{name}");
    }
    assert_eq!(head("POST / HTTP/1.0", "Transfer-Encoding: chunked\r\n").framing, Framing::Unclear);
    for method in ["GET", "HEAD", "TRACE", "get", "Head"] {
        for fields in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            assert_eq!(head(&format!("{method} / HTTP/1.1"), fields).framing, Framing::Unclear, "{method} {fields}");
        }
    }
    for method in ["CONNECT", "connect"] {
        assert_eq!(head(&format!("{method} /x HTTP/1.1"), "").framing, Framing::Unclear, "{method}");
    }
}

#[test]
fn another_protocol_is_requested_by_its_name() {
    let cases = [
        ("", UpgradeProtocol::No),
        ("Upgrade-Insecure-Requests: 1\r\nUpgrades: a\r\nUp-grade: a\r\n", UpgradeProtocol::No),
        ("Upgrade: h2c\r\n", UpgradeProtocol::H2c),
        ("upgrade:H2C\t\r\n", UpgradeProtocol::H2c),
        ("Upgrade: websocket\r\n", UpgradeProtocol::Other),
        ("Upgrade: h2c, websocket\r\n", UpgradeProtocol::Other),
        ("Upgrade: h2c h2c\r\n", UpgradeProtocol::Other),
        ("Upgrade: h2c\r\nUpgrade: h2c\r\n", UpgradeProtocol::Other),
        ("Upgrade:\r\n", UpgradeProtocol::Other),
    ];
    for (fields, upgrade) in cases {
        let found = head("GET / HTTP/1.1", fields);
        assert_eq!((found.upgrade, found.framing), (upgrade, Framing::Sized), "{fields:?}");
    }
}
