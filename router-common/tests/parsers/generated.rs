//! Generated input: arbitrary bytes, and well-formed messages of every shape.

use proptest::prelude::*;
use router_common::hostname::field_text;
use router_common::http::{HeadHost, TargetForm};
use router_common::tls::{AlpnSet, Progress, Sni};

use crate::common::drive::{HeadRun, HelloRun, singly};
use crate::common::hello_build::{ALPN, HelloBuild, PADDING, SERVER_NAME, host_name, protocols, record, records};
use crate::common::properties;

proptest! {
    #[test]
    fn any_bytes_hold_the_properties(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        properties::client_hello(&bytes);
        properties::request_head(&bytes);
        properties::host_name(&bytes);
    }

    #[test]
    fn any_bytes_in_a_record_hold_the_properties(bytes in prop::collection::vec(any::<u8>(), 1..600)) {
        properties::client_hello(&record(&bytes));
    }

    #[test]
    fn any_extensions_hold_the_properties(
        extensions in prop::collection::vec((prop_oneof![Just(0_u16), Just(16), any::<u16>()], body()), 0..6),
        cut in 1..300_usize,
    ) {
        let hello = HelloBuild { extensions: Some(extensions), ..HelloBuild::new() };
        properties::client_hello(&records(&hello.message(), cut));
    }

    #[test]
    fn any_head_like_text_holds_the_properties(text in "(GET|POST|X) /[a-z#]{0,4} HTTP/1\\.[01]\r\n([Hh]ost ?: ?[a-b.:*\\[\\]]{0,6}\r?\n){0,2}(\r\n)?") {
        properties::request_head(text.as_bytes());
    }

    #[test]
    fn any_framing_like_text_holds_the_properties(
        text in "(GET|POST|CONNECT|trace) / HTTP/1\\.[01]\r\nHost: a\r\n((([Cc]ontent-?-?_?[Ll]ength|[Tt]ransfer-?_?Encoding):[ \t]{0,2}(0|[0-9+]{1,3}|0?5|[0-9]{19,21}|5, ?5|Chunked|chunked|xchunked|)[ \t]?|Expect: x|Upgrade: (h2c|x)|X: y)\r\n){0,3}\r\n",
    ) {
        properties::request_head(text.as_bytes());
    }

    #[test]
    fn any_name_like_text_holds_the_properties(text in "[a-cA-C0-9._:\\[\\]*-]{0,80}(:[0-9]{0,6})?") {
        properties::host_name(text.as_bytes());
    }

    #[test]
    fn long_names_hold_the_properties(labels in prop::collection::vec("[a-z0-9-]{1,66}", 1..8), end in "(|\\.|:80)") {
        properties::host_name([labels.join("."), end].concat().as_bytes());
    }

    #[test]
    fn a_well_formed_hello_gives_its_name_and_protocols(
        name in name(),
        offered in prop::sample::subsequence(vec!["h2", "http/1.1", "acme-tls/1"], 0..=3),
        grease in prop::collection::btree_map(grease(), prop::collection::vec(any::<u8>(), 0..3), 0..3),
        unknown in prop::collection::btree_map(0x8000..0x9000_u16, body(), 0..4),
        size in prop_oneof![3 => 0..2000_usize, 1 => 2000..60_000_usize],
        seed in any::<[u32; 16]>(),
        record_size in prop_oneof![1..64_usize, 64..16_384_usize],
    ) {
        let mut hello = HelloBuild::new();
        let mut extensions = hello.extensions.take().unwrap_or_default();
        extensions.push((SERVER_NAME, host_name(name.as_bytes())));
        if !offered.is_empty() {
            let names: Vec<_> = offered.iter().map(|name| name.as_bytes()).collect();
            extensions.push((ALPN, protocols(&names)));
        }
        extensions.extend(grease);
        extensions.extend(unknown);
        extensions.push((PADDING, vec![0; size]));
        let mut order: Vec<_> = seed.iter().cycle().zip(extensions).enumerate().collect();
        order.sort_by_key(|(at, (seed, _))| seed.rotate_left(*at as u32));
        hello.extensions = Some(order.into_iter().map(|(_, (_, extension))| extension).collect());

        let bytes = records(&hello.message(), record_size);
        let run = HelloRun::over([&bytes[..]]);
        prop_assert_eq!(run.progress, Progress::Complete);
        prop_assert_eq!(run.parser.hello().sni, Sni::Name);
        prop_assert_eq!(field_text(&run.host.exact), name.to_ascii_lowercase());
        let alpn = run.parser.hello().alpn;
        for (bit, protocol) in [(AlpnSet::H2, "h2"), (AlpnSet::HTTP11, "http/1.1"), (AlpnSet::OTHER, "acme-tls/1")] {
            prop_assert_eq!(alpn.has(bit), offered.contains(&protocol));
        }
        prop_assert_eq!(HelloRun::over(singly(&bytes)), run);
        prop_assert_eq!(HelloRun::over([&bytes[..bytes.len() - 1]]).progress, Progress::Incomplete);
    }

    #[test]
    fn a_well_formed_head_gives_its_method_target_and_host(
        method in "[A-Z]{1,12}",
        path in "/[!-\"$-~]{0,60}",
        name in name(),
        port in prop::option::of(any::<u16>()),
        host_field in "[Hh][Oo][Ss][Tt]:[ \t]{0,3}",
        blanks in "[ \t]{0,3}",
        before in fields(),
        after in fields(),
        empty_lines in 0..3_usize,
        http11 in any::<bool>(),
        body in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        let version = if http11 { "1.1" } else { "1.0" };
        let lines = "\r\n".repeat(empty_lines);
        let head =
            format!("{lines}{method} {path} HTTP/{version}\r\n{before}{host_field}{name}{port}{blanks}\r\n{after}\r\n");
        let bytes = [head.as_bytes(), &body].concat();
        let run = HeadRun::over([&bytes[..]]);
        prop_assert_eq!(run.progress, router_common::http::Progress::Complete);
        let found = run.parser.head();
        let text = |start: u32, len: u16| &bytes[start as usize..][..len as usize];
        prop_assert_eq!(text(found.method_start, found.method_len), method.as_bytes());
        prop_assert_eq!(text(found.target_start, found.target_len), path.as_bytes());
        prop_assert_eq!((found.form, found.host, found.http11), (TargetForm::Origin, HeadHost::Name, http11));
        prop_assert_eq!(field_text(&run.host.exact), name.to_ascii_lowercase());
        prop_assert_eq!(found.len as usize, head.len());
        prop_assert_eq!(HeadRun::over(singly(&bytes)), run);
    }
}

/// Names whose last label is not all digits.
fn name() -> impl Strategy<Value = String> {
    let label = "[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,20}[a-zA-Z0-9_])?";
    (prop::collection::vec(label, 0..8), "[a-zA-Z][a-zA-Z0-9]{0,10}").prop_map(|(mut labels, last)| {
        labels.push(last);
        labels.join(".")
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

/// GREASE extension numbers (RFC 8701 §2).
fn grease() -> impl Strategy<Value = u16> {
    (0..16_u16).prop_map(|n| n << 12 | 0x0a00 | n << 4 | 0x0a)
}

/// Field lines, none of them Host.
fn fields() -> impl Strategy<Value = String> {
    let line = ("[A-GI-Za-gi-z!#$%&'*+.^_`|~0-9-]{1,12}", "[ -~\u{a0}-\u{ff}\t]{0,30}")
        .prop_map(|(name, value)| format!("{name}:{value}\r\n"));
    prop::collection::vec(line, 0..6).prop_map(|lines| lines.concat())
}
