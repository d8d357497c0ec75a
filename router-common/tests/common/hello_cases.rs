//! Unusual ClientHellos and their expected outcomes.
//!
//! A ClientHello for a.test gives `name=a.test`; alerts are those of RFC 8446 §6. The corpus has a file for each.

use std::vec;
use std::vec::Vec;

use super::Case;
use super::hello_build::{
    ALPN, HelloBuild, PADDING, SERVER_NAME, handshake, host_name, protocols, record, record_of, records, server_names,
};

const A: &str = "complete name=a.test alpn=-";
const NO_NAME: &str = "complete name=- alpn=-";
const ADDRESS: &str = "complete name=(address) alpn=-";
const LENGTH: &str = "invalid Length alert=50";
const BAD_NAME: &str = "invalid BadName alert=50";
const TWO_NAMES: &str = "invalid DuplicateSni alert=47";
const NO_TLS: &str = "invalid NotTls alert=-";
const OTHER_RECORD: &str = "invalid NotHandshake alert=-";

/// All of them.
pub fn all() -> Vec<Case> {
    [well_formed(), names(), records_and_lengths(), fields(), alpn()].into_iter().flatten().collect()
}

fn well_formed() -> Vec<Case> {
    let a = || HelloBuild::named("a.test");
    let message = a().message();
    let after_sni = 70; // past the name in the hello of `sni-first`
    let sni_first = HelloBuild::new().with_first(SERVER_NAME, host_name(b"a.test"));
    vec![
        case("plain", a().bytes(), A),
        case("upper-case", HelloBuild::named("A.TesT").bytes(), A),
        case("one-byte-per-record", records(&message, 1), A),
        case("large-key-share", a().with_first(0x0033, vec![9; 1250]).bytes(), A),
        case("large-key-share-two-records", records(&a().with_first(0x0033, vec![9; 1250]).message(), 1000), A),
        case("grease-first", a().with_first(0x1a1a, vec![]).with(0xfafa, vec![0]).bytes(), A),
        case("ech-outer", a().with(0xfe0d, [&[0, 0, 1, 0, 1, 0x2a][..], &[0; 200]].concat()).bytes(), A),
        case("record-version-0300", record_of(22, [3, 0], &message), A),
        case("record-version-0304", record_of(22, [3, 4], &message), A),
        case("legacy-version-0304", HelloBuild { version: [3, 4], ..a() }.bytes(), A),
        case(
            "two-records-split-after-sni",
            [record(&sni_first.message()[..after_sni]), record(&sni_first.message()[after_sni..])].concat(),
            A,
        ),
        case("sni-first", sni_first.bytes(), A),
        case("16-kb-one-record", a().padded_to(16384).bytes(), A),
        case("32-kb-two-records", records(&a().padded_to(32768).message(), 16384), A),
        case("60-kb-four-records", records(&a().padded_to(60 * 1024).message(), 16384), A),
        case("60-kb-small-records", records(&a().padded_to(60 * 1024).message(), 100), A),
        case("64-kb", records(&a().padded_to(65536).message(), 16384), A),
        case("more-handshake-after-hello", record(&[message.clone(), vec![11, 0, 0, 0]].concat()), A),
        case("no-sni", HelloBuild::new().bytes(), NO_NAME),
        case("no-extensions", HelloBuild { extensions: None, ..a() }.bytes(), NO_NAME),
        case("extensions-of-no-bytes", HelloBuild { extensions: Some(vec![]), ..a() }.bytes(), NO_NAME),
        case("stalled-after-30-bytes", a().bytes()[..30].to_vec(), "incomplete"),
    ]
}

fn names() -> Vec<Case> {
    let sni = |body: Vec<u8>| HelloBuild::new().with(SERVER_NAME, body).bytes();
    let name = |name: &[u8]| sni(host_name(name));
    let label = "l".repeat(63);
    let longest = [&label[..], &label, &label, &label[..61]].join(".");
    vec![
        case("trailing-dot", name(b"a.test."), A),
        case("two-trailing-dots", name(b"a.test.."), BAD_NAME),
        case("leading-dot", name(b".a.test"), BAD_NAME),
        case("empty-label", name(b"a..test"), BAD_NAME),
        case("only-a-dot", name(b"."), BAD_NAME),
        case("underscore", name(b"_a.test"), "complete name=_a.test alpn=-"),
        case("one-label", name(b"localhost"), "complete name=localhost alpn=-"),
        case("punycode", name(b"xn--bcher-kva.test"), "complete name=xn--bcher-kva.test alpn=-"),
        case(
            "two-sni-extensions",
            HelloBuild::named("a.test").with(SERVER_NAME, host_name(b"b.test")).bytes(),
            TWO_NAMES,
        ),
        case("two-host-names", sni(server_names(&[(0, b"a.test"), (0, b"b.test")])), TWO_NAMES),
        case("unknown-name-type", sni(server_names(&[(7, b"a.test")])), NO_NAME),
        case("unknown-name-type-first", sni(server_names(&[(7, b"x"), (0, b"a.test")])), NO_NAME),
        case("unknown-name-type-second", sni(server_names(&[(0, b"a.test"), (7, b"x")])), A),
        case("empty-host-name", name(b""), LENGTH),
        case("empty-name-list", sni(vec![0, 0]), LENGTH),
        case("empty-sni-extension", sni(vec![]), LENGTH),
        case("one-byte-sni-extension", sni(vec![0]), LENGTH),
        case("name-list-of-one-byte", sni(vec![0, 1, 0]), LENGTH),
        case("name-list-too-long", sni([&[0, 60][..], &host_name(b"a.test")[2..]].concat()), LENGTH),
        case("name-list-too-short", sni([&[0, 4][..], &host_name(b"a.test")[2..]].concat()), LENGTH),
        case("name-longer-than-list", sni([&[0, 9, 0, 0, 60][..], b"a.test"].concat()), LENGTH),
        case("garbage-after-name", sni(vector_with(&[(0, b"a.test")], b"x")), LENGTH),
        case("garbage-after-name-list", sni([host_name(b"a.test"), vec![0]].concat()), LENGTH),
        case("nul-in-name", name(b"a.test\0.b.test"), BAD_NAME),
        case("non-ascii-name", name("b\u{fc}cher.test".as_bytes()), BAD_NAME),
        case("literal-wildcard", name(b"*.w.test"), BAD_NAME),
        case("space-in-name", name(b"a test"), BAD_NAME),
        case("name-with-port", name(b"a.test:443"), BAD_NAME),
        case("name-of-300-bytes", name([&label[..]; 5].join(".").as_bytes()), BAD_NAME),
        case("label-of-64-bytes", name(&[b'l'; 64]), BAD_NAME),
        case("name-of-254-bytes", name([&longest, "l"].concat().as_bytes()), BAD_NAME),
        case("name-of-253-bytes", name(longest.as_bytes()), LONGEST),
        case("name-of-253-bytes-and-dot", name([&longest, "."].concat().as_bytes()), LONGEST),
        case("ipv4-literal", name(b"192.0.2.1"), ADDRESS),
        case("ipv6-literal", name(b"2001:db8::1"), ADDRESS),
        case("numeric-last-label", name(b"a.1"), ADDRESS),
    ]
}

fn records_and_lengths() -> Vec<Case> {
    let a = || HelloBuild::named("a.test");
    let message = a().message();
    let alert = record_of(21, [3, 1], &[1, 0]);
    let ccs = record_of(20, [3, 3], &[1]);
    let split = |between: &[u8]| [&record(&message[..40]), between, &record(&message[40..])].concat();
    let mut longer = message.clone();
    longer[3] += 1;
    let mut shorter = message.clone();
    shorter[3] -= 1;
    vec![
        case("over-64-kb", records(&a().padded_to(65537).message(), 16384)[..20].to_vec(), "invalid TooLarge alert=50"),
        case("of-16-mb", record(&[1, 255, 255, 255, 3, 3]), "invalid TooLarge alert=50"),
        case("extension-overruns-hello", overrun(), LENGTH),
        case("record-version-0505", record_of(22, [5, 5], &message), "invalid RecordVersion alert=70"),
        case("record-version-0203", record_of(22, [2, 3], &message), "invalid RecordVersion alert=70"),
        case("empty-record-first", [record(&[]), record(&message)].concat(), "invalid EmptyRecord alert=10"),
        case("empty-record-between", split(&record(&[])), "invalid EmptyRecord alert=10"),
        case("alert-first", [&alert[..], &record(&message)].concat(), OTHER_RECORD),
        case("alert-between", split(&alert), OTHER_RECORD),
        case("ccs-first", [&ccs[..], &record(&message)].concat(), OTHER_RECORD),
        case("ccs-between", split(&ccs), OTHER_RECORD),
        case("application-data-first", record_of(23, [3, 3], &message), OTHER_RECORD),
        case("noise-between", split(b"noise"), OTHER_RECORD),
        case("record-of-17000-bytes", record(&a().padded_to(17000).message())[..64].to_vec(), OVERFLOW),
        case("record-of-16385-bytes", record(&a().padded_to(16385).message())[..64].to_vec(), OVERFLOW),
        case("sslv2", vec![0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10, 1, 0, 0x80, 2, 0, 0x80, 3, 0, 0x80], NO_TLS),
        case("clear-text-http", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n".to_vec(), NO_TLS),
        case("noise", vec![0xde, 0xad, 0xbe, 0xef, 0x16, 0x03, 0x01], NO_TLS),
        case("proxy-protocol", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n".to_vec(), NO_TLS),
        case("server-hello-first", record(&handshake(2, &message[4..])), "invalid NotClientHello alert=10"),
        case("hello-request-first", record(&handshake(0, &[])), "invalid NotClientHello alert=10"),
        case("message-one-byte-short", record(&shorter), LENGTH),
        case("message-one-byte-long", record(&longer), LENGTH),
        case("message-of-no-bytes", record(&handshake(1, &[])), LENGTH),
        case("message-of-34-bytes", record(&handshake(1, &[3; 34])), LENGTH),
    ]
}

fn fields() -> Vec<Case> {
    let a = || HelloBuild::named("a.test");
    let no_suites = HelloBuild { suites: vec![], ..a() };
    let odd_suites = HelloBuild { suites: vec![0x13, 1, 0x13], ..a() };
    let no_extensions = HelloBuild { extensions: None, ..a() };
    let body = no_extensions.message()[4..].to_vec();
    vec![
        case("no-session-id", HelloBuild { session_id: vec![], ..a() }.bytes(), A),
        case("session-id-of-33-bytes", HelloBuild { session_id: vec![1; 33], ..a() }.bytes(), LENGTH),
        case("no-suites", no_suites.bytes(), LENGTH),
        case("odd-suites", odd_suites.bytes(), LENGTH),
        case("many-suites", HelloBuild { suites: vec![0x13; 4000], ..a() }.bytes(), A),
        case("no-compression", HelloBuild { compression: vec![], ..a() }.bytes(), LENGTH),
        case("many-compressions", HelloBuild { compression: (0..255).collect(), ..a() }.bytes(), A),
        case("one-byte-after-compressions", record(&handshake(1, &[&body[..], &[0]].concat())), LENGTH),
        case("extensions-too-short", record(&handshake(1, &[&body[..], &[0, 0, 0]].concat())), LENGTH),
        case("extensions-too-long", record(&handshake(1, &[&body[..], &[0, 5, 0, 0]].concat())), LENGTH),
        case("extension-of-three-bytes", record(&handshake(1, &[&body[..], &[0, 3, 0, 0, 0]].concat())), LENGTH),
        case("two-unknown-extensions-alike", a().with(0x1a1a, vec![]).with(0x1a1a, vec![]).bytes(), A),
        case(
            "sni-after-padding",
            HelloBuild::new().with(PADDING, vec![0; 900]).with(SERVER_NAME, host_name(b"a.test")).bytes(),
            A,
        ),
    ]
}

fn alpn() -> Vec<Case> {
    let with = |body: Vec<u8>| HelloBuild::named("a.test").with(ALPN, body).bytes();
    let longest = [b'p'; 255];
    vec![
        case("alpn-h2", with(protocols(&[b"h2"])), "complete name=a.test alpn=h2"),
        case("alpn-http11", with(protocols(&[b"http/1.1"])), "complete name=a.test alpn=http/1.1"),
        case("alpn-both", with(protocols(&[b"h2", b"http/1.1"])), "complete name=a.test alpn=h2,http/1.1"),
        case("alpn-other", with(protocols(&[b"http/1.0", &longest])), OTHER),
        case("alpn-almost-h2", with(protocols(&[b"H2", b"xxxxxxh2", b"2", b"h2 "])), OTHER),
        case("alpn-nul-h2", with(protocols(&[b"\0h2", b"\0\0\0\0\0\0h2"])), OTHER),
        case("alpn-other-first", with(protocols(&[b"x", b"h2"])), "complete name=a.test alpn=h2,other"),
        case("alpn-almost-http11", with(protocols(&[b"xhttp/1.1", b"ttp/1.1", b"HTTP/1.1"])), OTHER),
        case(
            "alpn-twice",
            HelloBuild::named("a.test").with(ALPN, protocols(&[b"h2"])).with(ALPN, protocols(&[b"x"])).bytes(),
            "complete name=a.test alpn=h2,other",
        ),
        case("alpn-empty-extension", with(vec![]), LENGTH),
        case("alpn-empty-list", with(vec![0, 0]), LENGTH),
        case("alpn-empty-protocol", with(protocols(&[b""])), LENGTH),
        case("alpn-protocol-overruns", with(vec![0, 3, 9, b'h', b'2']), LENGTH),
        case("alpn-list-too-short", with(vec![0, 3, 2, b'h', b'2', 0]), LENGTH),
    ]
}

const OTHER: &str = "complete name=a.test alpn=other";
const OVERFLOW: &str = "invalid RecordOverflow alert=22";
const LONGEST: &str = concat!(
    "complete name=",
    "lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll.",
    "lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll.",
    "lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll.",
    "lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll",
    " alpn=-"
);

fn case(name: &'static str, bytes: Vec<u8>, outcome: &'static str) -> Case {
    Case { name, bytes, outcome: outcome.into() }
}

/// A name list whose length includes `garbage` after the entries.
fn vector_with(entries: &[(u8, &[u8])], garbage: &[u8]) -> Vec<u8> {
    let list = [&server_names(entries)[2..], garbage].concat();
    [&(list.len() as u16).to_be_bytes()[..], &list].concat()
}

/// A ClientHello whose last extension claims one byte more than it has.
fn overrun() -> Vec<u8> {
    let mut bytes = HelloBuild::named("a.test").with(PADDING, vec![0; 3]).bytes();
    let at = bytes.len() - 4;
    bytes[at] += 1;
    bytes
}
