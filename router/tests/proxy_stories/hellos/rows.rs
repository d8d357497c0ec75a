//! The rows: the first bytes of a client, and the expected fate of the connection.

use super::HelloOutcome::{self, Alert, Closed, Hidden, Served};
use super::build::{RECORD, bare, extension, hello, named, padding, post_quantum, record, records, sni};

/// First bytes of a client.
pub struct Row {
    pub name: &'static str,
    /// Sent one after another.
    pub pieces: Vec<Vec<u8>>,
    /// Fate if TLS is passed through.
    pub passed: HelloOutcome,
    /// Fate if TLS is terminated.
    pub terminated: HelloOutcome,
}

fn row(name: &'static str, bytes: Vec<u8>, fate: HelloOutcome) -> Row {
    Row { name, pieces: vec![bytes], passed: fate, terminated: fate }
}

fn in_records(name: &'static str, message: &[u8], fate: HelloOutcome) -> Row {
    row(name, records(message, RECORD), fate)
}

/// All rows.
pub fn all() -> Vec<Row> {
    [names(), framing(), no_names(), malformed(), records_of_others(), other_bytes()].into_iter().flatten().collect()
}

/// Spellings of a name are equivalent.
fn names() -> Vec<Row> {
    vec![
        in_records("plain", &named(b"a.test"), Served('A')),
        in_records("another name", &named(b"b.test"), Served('B')),
        in_records("upper case", &named(b"A.TEST"), Served('A')),
        in_records("trailing dot", &named(b"a.test."), Served('A')),
        in_records("below a wildcard", &named(b"x.w.test"), Served('W')),
        in_records("below a wildcard, upper case", &named(b"X.W.TEST"), Served('W')),
        in_records("below a wildcard, trailing dot", &named(b"x.w.test."), Served('W')),
        in_records("two labels below a wildcard", &named(b"deep.er.w.test"), Served('D')),
        in_records("wildcard's own domain", &named(b"w.test"), Served('D')),
        in_records("unknown name", &named(b"unknown.test"), Served('D')),
        in_records("underscore", &named(b"_a.test"), Served('D')),
    ]
}

/// Segments, records and other extensions do not affect the name.
fn framing() -> Vec<Row> {
    let message = named(b"a.test");
    let whole = records(&message, RECORD);
    let versioned = |version: [u8; 2]| [&whole[..1], &version, &whole[3..]].concat();
    let mut legacy = message.clone();
    legacy.splice(4..6, [3, 4]);
    let ech = [&[0, 0, 1, 0, 1, 0x2a, 0, 32][..], &[7; 32], &[0, 100], &[9; 100]].concat();
    let in_pieces = |name, pieces: Vec<Vec<u8>>, terminated| Row { name, pieces, passed: Served('A'), terminated };
    let post_quantum = records(&post_quantum("a.test"), RECORD);
    assert!(post_quantum.len() > 1400, "two segments: {}", post_quantum.len());
    let (first, second) = post_quantum.split_at(1400);
    let large = |length| hello(&[padding(length), sni(&[(0, b"a.test")])]);
    let after_name = 80;
    vec![
        in_pieces("one byte per segment", whole.chunks(1).map(<[u8]>::to_vec).collect(), Served('A')),
        in_pieces("post-quantum", vec![post_quantum.clone()], Hidden),
        in_pieces("post-quantum in two segments", vec![first.to_vec(), second.to_vec()], Hidden),
        in_records("GREASE first", &hello(&[extension(0x1a1a, b""), sni(&[(0, b"a.test")])]), Served('A')),
        in_records("outer name of ECH", &hello(&[extension(0xfe0d, &ech), sni(&[(0, b"a.test")])]), Served('A')),
        row("record version 0300", versioned([3, 0]), Served('A')),
        row("record version 0304", versioned([3, 4]), Served('A')),
        in_records("legacy_version 0304", &legacy, Served('A')),
        row(
            "two records, split after the name",
            [record(&message[..after_name]), record(&message[after_name..])].concat(),
            Served('A'),
        ),
        row("two records", records(&message, message.len() / 2 + 1), Served('A')),
        row("one byte per record", records(&message, 1), Served('A')),
        in_records("16 KB, one record", &large(15_800), Served('A')),
        in_records("32 KB, several records", &large(32_000), Served('A')),
        in_records("60 KB, several records", &large(60_000), Served('A')),
    ]
}

/// Without a usable name, the router presents its own certificate, as OpenShift's router does.
fn no_names() -> Vec<Row> {
    let unknown_type = |name, entries: &[(u8, &[u8])]| Row {
        // Rustls rejects a list without a host_name.
        terminated: Alert(47),
        passed: Alert(47),
        ..in_records(name, &hello(&[sni(entries)]), Served('D'))
    };
    vec![
        in_records("no SNI", &bare(), Served('D')),
        in_records("IPv4 address", &named(b"127.0.0.1"), Served('D')),
        in_records("IPv6 address", &named(b"2001:db8::1"), Served('D')),
        unknown_type("unknown name_type", &[(7, b"a.test")]),
        unknown_type("unknown name_type first", &[(7, b"x"), (0, b"a.test")]),
        in_records("unknown name_type behind the name", &hello(&[sni(&[(0, b"a.test"), (7, b"x")])]), Served('A')),
    ]
}

fn malformed() -> Vec<Row> {
    let a: &[u8] = b"a.test";
    let long = vec![b'a'; 300];
    let mut long_list = named(a);
    let at = long_list.windows(6).position(|window| window == a).unwrap();
    long_list[at - 4] += 1;
    let mut garbage = sni(&[(0, a)]);
    garbage.extend_from_slice(b"xx");
    garbage[3] += 2;
    let mut overrun = named(a);
    overrun[at - 6] = 0xff;
    vec![
        in_records("two SNI extensions", &hello(&[sni(&[(0, a)]), sni(&[(0, b"b.test")])]), Alert(47)),
        in_records("two host_names", &hello(&[sni(&[(0, a), (0, b"b.test")])]), Alert(47)),
        in_records("empty host_name", &named(b""), Alert(50)),
        in_records("empty list", &hello(&[sni(&[])]), Alert(50)),
        in_records("NUL in the name", &named(b"a.test\0.b.test"), Alert(50)),
        in_records("NUL behind the name", &named(b"a.test\0"), Alert(50)),
        in_records("non-ASCII name", &named("ä.test".as_bytes()), Alert(50)),
        in_records("300 bytes of name", &named(&long), Alert(50)),
        in_records("wildcard as a name", &named(b"*.w.test"), Alert(50)),
        in_records("two trailing dots", &named(b"a.test.."), Alert(50)),
        in_records("name with a port", &named(b"a.test:443"), Alert(50)),
        in_records("list length too long", &long_list, Alert(50)),
        in_records("garbage behind the list", &hello(&[garbage]), Alert(50)),
        in_records("extension overruns the hello", &overrun, Alert(50)),
    ]
}

fn records_of_others() -> Vec<Row> {
    let whole = records(&named(b"a.test"), RECORD);
    let with_length = |length: u32| {
        let message = [&[1][..], &length.to_be_bytes()[1..]].concat();
        records(&[message, vec![0; RECORD - 4]].concat(), RECORD)
    };
    vec![
        row("record version 0505", [&whole[..1], &[5, 5], &whole[3..]].concat(), Alert(70)),
        row("empty record first", [&[22, 3, 1, 0, 0], &whole[..]].concat(), Alert(10)),
        row("record of 17,000 bytes", vec![22, 3, 1, 0x42, 0x68, 1, 0, 0, 0], Alert(22)),
        row("hello above 64 KiB", with_length(65_536), Alert(50)),
        row("another handshake message first", record(&[2, 0, 0, 2, 3, 3]), Alert(10)),
        row("alert first", vec![21, 3, 3, 0, 2, 1, 0], Closed),
        row("change_cipher_spec first", vec![20, 3, 3, 0, 1, 1], Closed),
        row("change_cipher_spec and a hello", [&[20, 3, 3, 0, 1, 1], &whole[..]].concat(), Closed),
    ]
}

/// Closed at once: these cannot become a hello.
fn other_bytes() -> Vec<Row> {
    vec![
        row("SSLv2", vec![0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10], Closed),
        row("HTTP", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n".to_vec(), Closed),
        row("PROXY protocol", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n".to_vec(), Closed),
        row("noise", vec![0xde, 0xad, 0xbe, 0xef, 0, 1, 2, 3], Closed),
    ]
}
