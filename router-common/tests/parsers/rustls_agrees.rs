//! Compares the ClientHello parser with rustls' `Acceptor`.
//!
//! A ClientHello that rustls accepts with a server name has that name here. One with a name here is accepted by rustls
//! with that name, or rejected for a reason in [`stricter`]. One that rustls accepts and this crate rejects is covered
//! by [`looser`].

use std::sync::LazyLock;

use proptest::prelude::*;
use router_common::hostname::{self, HostKind, field_text};
use router_common::tls::{AlpnSet, HelloError, Progress, Sni};
use rustls::server::Acceptor;
use rustls::{Error, InvalidMessage, PeerIncompatible, PeerMisbehaved};

use super::corpus;
use crate::common::drive::{HelloRun, hello_end};
use crate::common::hello_build::{HelloBuild, SERVER_NAME, host_name, records, unframed};
use crate::common::{Case, hello_cases};

#[test]
fn on_every_row_of_the_table() {
    for case in hello_cases::all() {
        compare(case.name, &case.bytes);
    }
}

#[test]
fn on_the_corpus() {
    for (name, (bytes, _)) in corpus::read("hello") {
        compare(&name, &bytes);
    }
}

#[test]
fn on_every_truncation_of_a_hello() {
    let bytes = HelloBuild::named("a.test").bytes();
    for len in 0..bytes.len() {
        compare("truncated", &bytes[..len]);
    }
}

#[test]
fn on_every_change_of_one_byte() {
    let bytes = HelloBuild::named("a.test").with(16, vec![0, 3, 2, b'h', b'2']).bytes();
    for at in 0..bytes.len() {
        for byte in [0, 1, 2, 4, 0x10, 0x7f, 0x80, 0xff, bytes[at].wrapping_add(1), bytes[at].wrapping_sub(1)] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            compare(&format!("byte {at} is {byte}"), &changed);
        }
    }
}

#[test]
fn on_hellos_that_rustls_writes() {
    let config = |post_quantum: bool| {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.kx_groups.retain(|group| format!("{:?}", group.name()).contains("MLKEM") == post_quantum);
        let mut config = rustls::ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS 1.2 and 1.3")
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        std::sync::Arc::new(config)
    };
    for (post_quantum, least) in [(true, 1200), (false, 200)] {
        let name = "www.a.test".try_into().expect("a name");
        let mut client = rustls::ClientConnection::new(config(post_quantum), name).expect("a client");
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).expect("a hello");
        assert!(bytes.len() > least, "{} bytes", bytes.len());
        assert_eq!(HelloRun::over([&bytes[..]]).outcome(), "complete name=www.a.test alpn=h2,http/1.1");
        compare("written by rustls", &bytes);
    }
}

proptest! {
    #[test]
    fn on_hellos_with_changes(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
        record in 1..600_usize,
    ) {
        let mut bytes = which.get(&SEEDS).bytes.clone();
        for (at, byte, kind) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        compare("changed", &bytes);
        compare("changed, in other records", &records(&unframed(&bytes), record));
    }

    #[test]
    fn on_any_name(name in "[a-zA-Z0-9._:*\\x00-]{1,20}") {
        compare(&name, &HelloBuild::new().with(SERVER_NAME, host_name(name.as_bytes())).bytes());
    }
}

/// Rows of the table that are short enough for a change to have an effect.
static SEEDS: LazyLock<Vec<Case>> =
    LazyLock::new(|| hello_cases::all().into_iter().filter(|case| case.bytes.len() < 3000).collect());

/// rustls' result for a ClientHello.
#[derive(Debug)]
enum Theirs {
    Incomplete,
    Accepted { name: Option<String>, alpn: AlpnSet },
    Refused(Error),
}

fn compare(what: &str, bytes: &[u8]) {
    let ours = HelloRun::over([bytes]);
    let name = field_text(&ours.host.exact);
    let theirs = theirs(bytes);
    match (ours.progress, &theirs) {
        (Progress::Complete, Theirs::Accepted { name: Some(their), alpn }) => {
            assert_eq!(ours.parser.hello().sni, Sni::Name, "{what}: rustls has {their}");
            assert_eq!(normal(their), name, "{what}");
            assert_eq!(ours.parser.hello().alpn, *alpn, "{what}");
        }
        (Progress::Complete, Theirs::Accepted { name: None, alpn }) => {
            assert_ne!(ours.parser.hello().sni, Sni::Name, "{what}: {name} here, no name in rustls");
            assert_eq!(ours.parser.hello().alpn, *alpn, "{what}");
        }
        (Progress::Complete, Theirs::Refused(_)) if alone(bytes).is_some() => {
            // rustls may also reject bytes after the ClientHello.
            compare(what, &alone(bytes).unwrap_or_default());
        }
        (Progress::Complete, Theirs::Refused(error)) => {
            let reason = stricter(error, name, bytes);
            assert!(reason.is_some(), "{what}: {name} here, {error} in rustls: {}", shown(bytes));
        }
        // rustls reads whole records only.
        (Progress::Complete, Theirs::Incomplete) => {
            assert!(ends_within_a_record(bytes), "{what}: complete here, incomplete in rustls: {}", shown(bytes));
        }
        // Input that never becomes a ClientHello may be rejected at different bytes.
        (Progress::Incomplete, Theirs::Incomplete | Theirs::Refused(_))
        | (Progress::Invalid(_), Theirs::Incomplete | Theirs::Refused(_)) => {}
        (Progress::Incomplete, Theirs::Accepted { .. }) => {
            panic!("{what}: incomplete here, {theirs:?} in rustls: {}", shown(bytes))
        }
        (Progress::Invalid(error), Theirs::Accepted { .. }) => {
            assert!(looser(error, bytes).is_some(), "{what}: {error:?} here, {theirs:?} in rustls: {}", shown(bytes));
        }
    }
}

/// Why rustls rejects a ClientHello that is routed here. Routing needs the name only; the TLS server checks the rest.
fn stricter(error: &Error, name: &str, bytes: &[u8]) -> Option<&'static str> {
    match error {
        Error::PeerIncompatible(PeerIncompatible::NullCompressionRequired) => Some("compression methods are not read"),
        Error::PeerIncompatible(PeerIncompatible::SignatureAlgorithmsExtensionRequired) => {
            Some("signature_algorithms is not read")
        }
        Error::InvalidMessage(InvalidMessage::DuplicateExtension(number)) if *number != SERVER_NAME => {
            Some("an extension that is not read, or ALPN, comes twice")
        }
        Error::PeerMisbehaved(PeerMisbehaved::ServerNameMustContainOneHostName) => stricter_name(name, bytes),
        Error::General(text) if text.contains("buffer full") && bytes.len() > 0xffff => {
            Some("rustls counts record headers, too, when it stops at 64 KiB")
        }
        Error::InvalidMessage(InvalidMessage::PreSharedKeyIsNotFinalExtension) => Some("extension order is not read"),
        Error::InvalidMessage(
            InvalidMessage::MissingData(part)
            | InvalidMessage::TrailingData(part)
            | InvalidMessage::IllegalEmptyList(part),
        ) => (!READ_HERE.contains(part)).then_some("the body of an extension that is not read"),
        Error::InvalidMessage(
            InvalidMessage::IllegalEmptyValue
            // The type of an encrypted_client_hello extension.
            | InvalidMessage::InvalidContentType
            | InvalidMessage::NoSignatureSchemes
            | InvalidMessage::MessageTooShort,
        ) => Some("the body of an extension that is not read"),
        _ => None,
    }
}

/// Parts of a ClientHello, by rustls' names, whose lengths are also checked here.
const READ_HERE: [&str; 6] =
    ["ClientHelloPayload", "ServerNames", "ServerNamePayload", "ProtocolNames", "CipherSuites", "Compressions"];

/// Why rustls finds no host name in a server_name extension.
fn stricter_name(name: &str, bytes: &[u8]) -> Option<&'static str> {
    if name.is_empty() {
        return Some("only names of unknown types, which count as no name here");
    }
    if name.split('.').any(|label| label.starts_with('-') || label.ends_with('-')) {
        return Some("a label begins or ends with a hyphen: no route has it, but it is read");
    }
    if name.len() == hostname::MAX_NAME && bytes.windows(2).any(|pair| pair == b".\0" || pair[0] == b'.') {
        return Some("253 bytes and a trailing dot");
    }
    let literal = hostname::normalise(name.as_bytes()).map(|(_, kind)| kind) == Ok(HostKind::IpLiteral);
    literal.then_some("digits or colons that are no exact address: no name here either")
}

/// Why a ClientHello that rustls accepts is rejected here.
fn looser(error: HelloError, bytes: &[u8]) -> Option<&'static str> {
    match error {
        HelloError::RecordOverflow => Some("rustls takes plaintext records up to the size of encrypted ones"),
        HelloError::NotHandshake if bytes.contains(&21) || bytes.contains(&20) => {
            Some("rustls passes over warning alerts and change_cipher_spec")
        }
        HelloError::Length if short_entry_of_unknown_type(bytes) => {
            Some("rustls does not look at what follows an unknown name type, its length included")
        }
        _ => None,
    }
}

/// The ClientHello alone; `None` if nothing follows it.
fn alone(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = unframed(bytes);
    let hello = message.get(..4 + u32::from_be_bytes([0, message[1], message[2], message[3]]) as usize)?;
    (hello_end(bytes)? < bytes.len()).then(|| records(hello, 16_384))
}

/// Whether the bytes end within the last record.
fn ends_within_a_record(mut bytes: &[u8]) -> bool {
    while let [_, _, _, high, low, rest @ ..] = bytes {
        let Some(next) = rest.get(u16::from_be_bytes([*high, *low]) as usize..) else { return true };
        bytes = next;
    }
    !bytes.is_empty()
}

/// Whether the server name list of a ClientHello that rustls accepts has an entry of an unknown type that is empty or
/// longer than the list.
fn short_entry_of_unknown_type(bytes: &[u8]) -> bool {
    let message = unframed(bytes);
    let number = |at: usize, size: usize| message[at..at + size].iter().fold(0, |n, byte| n << 8 | *byte as usize);
    let mut at = 4 + 2 + 32;
    at += 1 + number(at, 1);
    at += 2 + number(at, 2);
    at += 1 + number(at, 1);
    at += 2;
    while number(at, 2) != SERVER_NAME as usize {
        at += 4 + number(at + 2, 2);
    }
    let end = at + 4 + number(at + 2, 2);
    at += 6;
    while at + 3 <= end && message[at] == 0 {
        at += 3 + number(at + 1, 2);
    }
    at < end && message[at] != 0 && (at + 4 > end || number(at + 1, 2) == 0 || at + 3 + number(at + 1, 2) > end)
}

fn shown(bytes: &[u8]) -> String {
    bytes.iter().take(600).map(|byte| format!("{byte:02x}")).collect()
}

fn theirs(bytes: &[u8]) -> Theirs {
    let mut acceptor = Acceptor::default();
    let mut rest = bytes;
    loop {
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let hello = accepted.client_hello();
                let mut alpn = 0;
                for protocol in hello.alpn().into_iter().flatten() {
                    alpn |= match protocol {
                        b"h2" => AlpnSet::H2,
                        b"http/1.1" => AlpnSet::HTTP11,
                        _ => AlpnSet::OTHER,
                    };
                }
                return Theirs::Accepted { name: hello.server_name().map(str::to_owned), alpn: AlpnSet(alpn) };
            }
            Ok(None) if rest.is_empty() => return Theirs::Incomplete,
            Ok(None) => match acceptor.read_tls(&mut rest) {
                Ok(_) => {}
                Err(error) => return Theirs::Refused(Error::General(error.to_string())),
            },
            Err((error, _)) => return Theirs::Refused(error),
        }
    }
}

fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}
