//! Compares the head parser with `httparse`.
//!
//! httparse parses every complete head with the same method, target, version and Host. A head that only this crate
//! rejects is rejected for a reason in [`stricter`], which is checked on the bytes.

use std::sync::LazyLock;

use proptest::prelude::*;
use router_common::hostname::{self, HostKind, field_text};
use router_common::http::{HeadError, HeadHost, MAX_HEAD, Progress};

use super::corpus;
use crate::common::drive::HeadRun;
use crate::common::{Case, head_cases};

#[test]
fn on_every_row_of_the_table() {
    for case in head_cases::all() {
        compare(&case.bytes);
    }
}

#[test]
fn on_the_corpus() {
    for (_, (bytes, _)) in corpus::read("head") {
        compare(&bytes);
    }
}

#[test]
fn on_every_change_of_one_byte() {
    let bytes = b"GET /path?q=1 HTTP/1.1\r\nX-Y: z\r\nHost: a.test:80\r\nV: \xfc\r\n\r\n";
    for at in 0..bytes.len() {
        for byte in 0..=u8::MAX {
            let mut changed = bytes.to_vec();
            changed[at] = byte;
            compare(&changed);
            changed.remove(at);
            compare(&changed);
            changed.insert(at, byte);
            changed.insert(at, bytes[at]);
            compare(&changed);
        }
    }
}

proptest! {
    #[test]
    fn on_heads_with_changes(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), odd_byte(), 0..3_u8), 1..5),
    ) {
        let mut bytes = which.get(&SEEDS).bytes.clone();
        for (at, byte, kind) in changes {
            let at = at.index(bytes.len().max(1));
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        compare(&bytes);
    }

    #[test]
    fn on_lines_of_tokens(lines in prop::collection::vec(line(), 1..6), end in "(\r\n|\n|)") {
        compare([lines.concat(), end].concat().as_bytes());
    }
}

/// Rows of the table that are short enough for a change to have an effect.
static SEEDS: LazyLock<Vec<Case>> =
    LazyLock::new(|| head_cases::all().into_iter().filter(|case| case.bytes.len() < 2000).collect());

fn odd_byte() -> impl Strategy<Value = u8> {
    prop_oneof![any::<u8>(), prop::sample::select(b" \t\r\n:/.,@[]*#\0hH%".to_vec())]
}

fn line() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "GET",
        "OPTIONS",
        " ",
        "  ",
        "/",
        "*",
        "http://b.test",
        "b.test:443",
        "HTTP/1.1",
        "HTTP/1.0",
        "HTTP/2.0",
        "Host",
        "host",
        ":",
        ": ",
        " : ",
        "a.test",
        "A.TEST.",
        ":80",
        "[::1]",
        "X",
        "\t",
        "#",
        "v",
        "b\u{fc}",
    ]);
    let request = prop::sample::select(vec!["GET / HTTP/1.1\r\nHost: a.test\r\n", "GET / HTTP/1.0\r\n", "Host: b\r\n"]);
    let end = prop::sample::select(vec!["\r\n", "\r\n", "\r\n", "\n", "\r", ""]);
    prop_oneof![
        request.prop_map(str::to_owned),
        (prop::collection::vec(piece, 1..6), end).prop_map(|(pieces, end)| [&pieces.concat(), end].concat()),
    ]
}

fn compare(bytes: &[u8]) {
    let ours = HeadRun::over([bytes]);
    let mut fields = vec![httparse::EMPTY_HEADER; bytes.len() / 4 + 1];
    let mut theirs = httparse::Request::new(&mut fields);
    let read = theirs.parse(bytes);
    match (ours.progress, read) {
        (Progress::Complete, Ok(httparse::Status::Complete(len))) => {
            let head = ours.parser.head();
            let part = |start: u32, len: u16| &bytes[start as usize..][..len as usize];
            assert_eq!(head.len as usize, len, "{}", bytes.escape_ascii());
            assert_eq!(Some(part(head.method_start, head.method_len)), theirs.method.map(str::as_bytes));
            assert_eq!(Some(part(head.target_start, head.target_len)), theirs.path.map(str::as_bytes));
            assert_eq!(theirs.version, Some(u8::from(head.http11)));
            let hosts = hosts(theirs.headers);
            match head.host {
                HeadHost::None => assert!(hosts.iter().all(|host| host.is_empty()), "{}", bytes.escape_ascii()),
                HeadHost::IpLiteral => assert_eq!(kind(&hosts), Some(HostKind::IpLiteral)),
                HeadHost::Name => {
                    assert_eq!(kind(&hosts), Some(HostKind::Name), "{}", bytes.escape_ascii());
                    let text = String::from_utf8(hosts[0].to_ascii_lowercase()).expect("a name is ASCII");
                    let name = text.split(':').next().expect("the part before the port");
                    assert_eq!(name.strip_suffix('.').unwrap_or(name), field_text(&ours.host.exact));
                }
            }
        }
        (Progress::Complete, read) => panic!("complete here, {read:?} in httparse: {}", bytes.escape_ascii()),
        (Progress::Invalid(error), Ok(httparse::Status::Complete(len))) => {
            let read = &bytes[..len];
            assert!(stricter(error, read, &theirs), "{error:?} here, read by httparse: {}", read.escape_ascii());
        }
        (Progress::Incomplete, Ok(httparse::Status::Complete(_))) => {
            panic!("incomplete here, read by httparse: {}", bytes.escape_ascii())
        }
        // Either parser may detect an error earlier than the other.
        (Progress::Invalid(_) | Progress::Incomplete, Err(_) | Ok(httparse::Status::Partial)) => {}
    }
}

/// Whether a head that httparse accepts is rejected here for a known reason.
fn stricter(error: HeadError, head: &[u8], theirs: &httparse::Request<'_, '_>) -> bool {
    let target = theirs.path.unwrap_or_default().as_bytes();
    let bare_lf = (0..head.len()).any(|at| head[at] == b'\n' && (at == 0 || head[at - 1] != b'\r'));
    let hosts = hosts(theirs.headers);
    match error {
        // Lines that end in a bare LF, including an empty one before the request line.
        HeadError::LineEnd => bare_lf,
        HeadError::NotHttp => head.starts_with(b"\n") || head.starts_with(b"\r\n\n") || bare_lf,
        // The method is longer than the limit.
        HeadError::Method => theirs.method.is_some_and(|method| method.len() > 32),
        // A fragment, raw non-ASCII, or a form outside RFC 9112 §3.2.
        HeadError::Target => {
            let first = target.first().copied().unwrap_or_default();
            target.iter().any(|byte| !byte.is_ascii_graphic() || *byte == b'#')
                || !(first == b'/' || first == b'*' || first == b'[' || first.is_ascii_alphanumeric())
                || (first == b'*' && target.len() > 1)
        }
        HeadError::NoHost => hosts.is_empty() && theirs.version == Some(1),
        HeadError::DuplicateHost => hosts.len() > 1,
        HeadError::BadHost => hosts.iter().any(|host| !host.is_empty() && kind(&[*host]).is_none()),
        HeadError::TooLarge => head.len() > MAX_HEAD as usize,
        // httparse is as strict.
        HeadError::Version | HeadError::HeaderName | HeadError::HeaderValue | HeadError::Fold => false,
    }
}

fn hosts<'a>(fields: &[httparse::Header<'a>]) -> Vec<&'a [u8]> {
    let host = |field: &&httparse::Header<'a>| field.name.eq_ignore_ascii_case("host");
    fields.iter().filter(host).map(|field| field.value.trim_ascii()).collect()
}

fn kind(hosts: &[&[u8]]) -> Option<HostKind> {
    let [host] = hosts else { return None };
    hostname::normalise_authority(host).ok().map(|(_, kind)| kind)
}
