//! Properties that hold for any input. The fuzz targets and the tests call these functions; a violation panics.

use std::string::String;
use std::vec::Vec;

use router_common::hostname::{self, HostBuilder, HostError, HostKind, NormalName, field_text};
use router_common::http::{Framing, HeadError, HeadHost, HeadParser, MAX_HEAD, Progress as HeadProgress, UnreadHost};
use router_common::tls::{HelloParser, MAX_HELLO, Progress as HelloProgress, Sni, next_of};

/// Fixed seeds of piece sizes, beside the whole input and single bytes.
const SEEDS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9];

/// The ClientHello parser gives the same result for every split of the input, and a result that fits the input.
pub fn client_hello(input: &[u8]) {
    let (mut parser, mut host) = (HelloParser::new(), HostBuilder::new());
    let mut progress = HelloProgress::Incomplete;
    let mut at = 0;
    while progress == HelloProgress::Incomplete && at < input.len() {
        let available = (input.len() - at) as u32;
        let step = parser.step(&mut host, next_of(&input[at..]), available);
        assert!(step.consumed >= 1 && step.consumed <= available, "{step:?} of {available}");
        at += step.consumed as usize;
        progress = step.progress;
    }
    let whole = (parser, host, progress);
    for pieces in pieces(input) {
        let (mut parser, mut host) = (HelloParser::new(), HostBuilder::new());
        let mut progress = HelloProgress::Incomplete;
        for piece in pieces {
            if progress == HelloProgress::Incomplete {
                progress = parser.feed(&mut host, piece);
            }
        }
        assert_eq!((parser, host, progress), whole, "another answer for another cut");
    }
    match progress {
        // Each byte of the ClientHello may be in a record of its own, with a header of five bytes.
        HelloProgress::Incomplete => assert!(input.len() < MAX_HELLO as usize * 6, "gathers without end"),
        HelloProgress::Complete if parser.hello().sni == Sni::Name => is_normal(&host),
        HelloProgress::Complete | HelloProgress::Invalid(_) => {}
    }
}

/// The head parser gives the same result for every split of the input, and positions within the input.
pub fn request_head(input: &[u8]) {
    let run = |pieces: Vec<&[u8]>| {
        let (mut parser, mut host) = (HeadParser::new(), HostBuilder::new());
        let mut progress = HeadProgress::Incomplete;
        for piece in pieces {
            if progress == HeadProgress::Incomplete {
                progress = parser.feed(&mut host, piece);
            }
        }
        (parser, host, progress)
    };
    let whole = run(Vec::from([input]));
    for pieces in pieces(input) {
        assert_eq!(run(pieces), whole, "another answer for another cut");
    }
    let (parser, host, progress) = whole;
    // Byte by byte, as in the kernel.
    let (mut steps, mut name) = (HeadParser::new(), HostBuilder::new());
    let mut each = input.iter();
    let mut step = || each.next().map_or(HeadProgress::Incomplete, |byte| steps.step(&mut name, *byte));
    let end = (0..input.len()).map(|_| step()).find(|progress| *progress != HeadProgress::Incomplete);
    assert_eq!((steps, end.unwrap_or(HeadProgress::Incomplete)), (parser, progress), "another answer byte by byte");
    // A parser that leaves the host for later finds the same, except for the host.
    let mut later = HeadParser::new();
    let unread = later.feed(&mut UnreadHost, input);
    if progress == HeadProgress::Invalid(HeadError::BadHost) {
        assert!(later.head().len >= parser.head().len);
    } else {
        let (mut all, mut head) = (parser.head(), later.head());
        (all.host, head.host) = (HeadHost::None, HeadHost::None);
        assert_eq!((unread, head), (progress, all), "another answer with the host unread");
    }
    match progress {
        HeadProgress::Incomplete => assert!(input.len() <= MAX_HEAD as usize, "gathers without end"),
        HeadProgress::Invalid(_) => {}
        HeadProgress::Complete => {
            let head = parser.head();
            assert!(head.len <= MAX_HEAD && input[..head.len as usize].ends_with(b"\r\n\r\n"));
            let method = &input[head.method_start as usize..][..head.method_len as usize];
            let target = &input[head.target_start as usize..][..head.target_len as usize];
            assert!(!method.is_empty() && method.iter().all(|byte| byte.is_ascii_graphic()));
            assert!(!target.is_empty() && target.iter().all(|byte| byte.is_ascii_graphic()));
            let line = [method, b" ", target, b" HTTP/1.", if head.http11 { b"1" } else { b"0" }, b"\r\n"].concat();
            assert!(input[head.method_start as usize..].starts_with(&line), "no request line at the positions");
            if head.host == HeadHost::Name {
                is_normal(&host);
            }
            let found = (head.framing != Framing::Unclear).then_some((head.framing, head.length));
            assert_eq!(found, framing(&input[..head.len as usize], method, head.http11), "another end of the content");
        }
    }
}

/// How a head determines its content's end, if it is clear; implemented with strings.
fn framing(head: &[u8], method: &[u8], http11: bool) -> Option<(Framing, u64)> {
    let line = |line: &[u8]| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((line[..colon].to_ascii_lowercase(), line[colon + 1..].trim_ascii().to_ascii_lowercase()))
    };
    let start = head.trim_ascii_start().split(|byte| *byte == b'\n').skip(1);
    let fields: Vec<_> = start.filter_map(line).collect();
    let letters = |name: &[u8]| name.iter().copied().filter(u8::is_ascii_alphanumeric).collect::<Vec<_>>();
    let of = |known: &[u8]| fields.iter().filter(|(name, _)| letters(name) == letters(known)).collect::<Vec<_>>();
    let (lengths, codings) = (of(b"content-length"), of(b"transfer-encoding"));
    let is_spelled = |(name, _): &&(Vec<u8>, Vec<u8>)| name == b"content-length" || name == b"transfer-encoding";
    let method = method.to_ascii_lowercase();
    if lengths.len() + codings.len() > 1 || !lengths.iter().chain(&codings).all(is_spelled) || method == b"connect" {
        return None;
    }
    let framing = match (lengths.first(), codings.first()) {
        (None, None) => (Framing::Sized, 0),
        (Some((_, length)), _) => {
            let is_decimal =
                length.iter().all(u8::is_ascii_digit) && (length[..] == *b"0" || !length.starts_with(b"0"));
            let length: u64 = std::str::from_utf8(length).ok().filter(|_| is_decimal)?.parse().ok()?;
            (Framing::Sized, Some(length).filter(|length| *length / 10 < 1 << 59)?)
        }
        (None, Some((_, coding))) => (coding == b"chunked" && http11).then_some((Framing::Chunked, 0))?,
    };
    let no_use = [&b"get"[..], b"head", b"trace"].contains(&&method[..]);
    let expects = fields.iter().any(|(name, _)| name == b"expect");
    if framing != (Framing::Sized, 0) && (no_use || expects) { None } else { Some(framing) }
}

/// The normalisation agrees with one implemented with strings, is idempotent, and fills both key fields.
pub fn host_name(input: &[u8]) {
    let result = hostname::normalise(input);
    assert_eq!(result.map(|(_, kind)| kind), model(input).map(|(_, kind)| kind), "name {input:?}");
    if let (Ok((host, HostKind::Name)), Ok((text, _))) = (result, model(input)) {
        assert_eq!(field_text(&host.exact), text);
        is_normal(&host);
    }
    let result = hostname::normalise_authority(input);
    assert_eq!(
        result.map(|(host, kind)| (kind, host.port())),
        authority_model(input).map(|(_, kind, port)| (kind, port)),
        "authority {input:?}"
    );
    if let (Ok((host, HostKind::Name)), Ok((text, ..))) = (result, authority_model(input)) {
        assert_eq!(field_text(&host.exact), text);
        is_normal(&host);
    }
    // A name that is recognised as normalised is normalised, and every normalised name with a short port is recognised.
    let quick = NormalName::of_authority(input).map(NormalName::as_str);
    let name = result.ok().filter(|(_, kind)| *kind == HostKind::Name).map(|(host, _)| host);
    let (before, port) = input.split_at(input.iter().position(|byte| *byte == b':').unwrap_or(input.len()));
    match (quick, name) {
        (Some(quick), Some(name)) => assert_eq!(quick, field_text(&name.exact), "{input:?}"),
        (Some(quick), None) => panic!("{input:?} has no name, and was taken for {quick}"),
        (None, Some(name)) => {
            let is_normal = field_text(&name.exact).as_bytes() == before;
            assert!(!is_normal || port.len() > 6, "{input:?} has a normal name");
        }
        (None, None) => {}
    }
}

/// A normalised name normalises to itself, and the fields contain it and its wildcard, padded with zeros.
fn is_normal(host: &HostBuilder) {
    let text = field_text(&host.exact);
    assert_eq!(host.len(), text.len());
    assert!(host.exact[text.len()..].iter().all(|byte| *byte == 0));
    let wildcard = text.split_once('.').map_or(String::new(), |(_, parent)| ["*.", parent].concat());
    assert_eq!(field_text(&host.wildcard), wildcard);
    assert!(host.wildcard[wildcard.len()..].iter().all(|byte| *byte == 0));
    let again = hostname::normalise(text.as_bytes()).map(|(again, kind)| (again.exact, again.wildcard, kind));
    assert_eq!(again, Ok((host.exact, host.wildcard, HostKind::Name)), "{text} the second time");
}

/// The rules of a name, implemented with strings: the first byte that violates one determines the error.
fn model(input: &[u8]) -> Result<(String, HostKind), HostError> {
    let mut text = String::new();
    for (at, byte) in input.iter().enumerate() {
        let after_dot = at > 0 && input[at - 1] == b'.';
        let label = text.rsplit('.').next().unwrap_or("").bytes().filter(|byte| *byte != b':').count();
        match byte {
            // A dot counts once another byte follows it.
            b'.' if label == 0 || after_dot => return Err(HostError::EmptyLabel),
            b'.' => continue,
            b':' if after_dot => return Err(HostError::BadByte),
            b':' => text.push(':'),
            b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                if after_dot {
                    text.push('.');
                } else if label >= 63 {
                    return Err(HostError::LongLabel);
                }
                text.push(char::from(byte.to_ascii_lowercase()));
            }
            _ => return Err(HostError::BadByte),
        }
        if text.len() > 253 {
            return Err(HostError::LongName);
        }
    }
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    let last = text.rsplit('.').next().unwrap_or("");
    let kind = if text.contains(':') {
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'.' || byte == b':') {
            return Err(HostError::BadByte);
        }
        HostKind::IpLiteral
    } else if last.bytes().all(|byte| byte.is_ascii_digit()) {
        HostKind::IpLiteral
    } else {
        HostKind::Name
    };
    Ok((text, kind))
}

/// The rules of `uri-host [ ":" port ]`, implemented with strings.
fn authority_model(input: &[u8]) -> Result<(String, HostKind, Option<u16>), HostError> {
    if let [b'[', rest @ ..] = input {
        let end = rest.iter().position(|byte| *byte == b']');
        let inside = &rest[..end.unwrap_or(rest.len())];
        if let Some(bad) = inside.iter().position(|b| !(b.is_ascii_hexdigit() || *b == b':' || *b == b'.')) {
            return Err(if bad > 253 { HostError::LongName } else { HostError::BadByte });
        }
        if inside.len() > 253 {
            return Err(HostError::LongName);
        }
        let Some(end) = end else { return Err(HostError::BadByte) };
        return match &rest[end + 1..] {
            [] if inside.is_empty() => Err(HostError::Empty),
            [] => Ok((String::new(), HostKind::IpLiteral, None)),
            [b':', ..] if inside.is_empty() => Err(HostError::Empty),
            [b':', port @ ..] => Ok((String::new(), HostKind::IpLiteral, port_model(port)?)),
            _ => Err(HostError::BadByte),
        };
    }
    let Some(colon) = input.iter().position(|byte| *byte == b':') else {
        return model(input).map(|(text, kind)| (text, kind, None));
    };
    let (text, kind) = model(&input[..colon])?;
    Ok((text, kind, port_model(&input[colon + 1..])?))
}

/// At most nine digits, at most 65535.
fn port_model(digits: &[u8]) -> Result<Option<u16>, HostError> {
    if digits.is_empty() {
        return Ok(None);
    }
    if digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(HostError::BadPort);
    }
    let text = core::str::from_utf8(digits).map_err(|_| HostError::BadPort)?;
    text.parse().map(Some).map_err(|_| HostError::BadPort)
}

/// The input as a whole, byte by byte, in halves, and in pieces of sizes from the seeds.
fn pieces(input: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut all = Vec::from([Vec::from([input]), input.chunks(1).collect()]);
    let (left, right) = input.split_at(input.len() / 2);
    all.push(Vec::from([left, right]));
    for mut seed in SEEDS {
        let (mut rest, mut cut) = (input, Vec::new());
        while !rest.is_empty() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let size = (1 + (seed >> 33) as usize % 200).min(rest.len());
            let (piece, next) = rest.split_at(size);
            cut.push(piece);
            rest = next;
        }
        all.push(cut);
    }
    all
}
