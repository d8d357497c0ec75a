//! Executes `httpHeaders.actions` of routes and IngressControllers (docs/openshift.md#header-actions). Values are
//! computed as by HAProxy (configuration manual, `http-request set-header`, "Custom log format").

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use router_table::policy::header_actions::{HeaderAction, HeaderChange};
use router_table::policy::header_value::{Converter, Expression, Fetch, HeaderValue as HeaderText, ValuePart};

/// Executes actions in order; each sees the results of earlier ones. `certificate` is the client's, in DER. Framing and
/// connection-specific fields are not changed.
pub fn apply(actions: &[HeaderAction], headers: &mut HeaderMap, certificate: Option<&[u8]>) {
    for action in actions {
        let Ok(name) = HeaderName::try_from(&*action.name) else { continue };
        if is_framing(&name) {
            continue;
        }
        match &action.change {
            HeaderChange::Delete => drop(headers.remove(&name)),
            HeaderChange::Set(text) => {
                if let Some(value) = value(text, headers, certificate) {
                    headers.insert(name, value);
                }
            }
        }
    }
}

/// Whether a field frames a message or is connection-specific.
pub(super) fn is_framing(name: &HeaderName) -> bool {
    const FRAMING: [HeaderName; 7] = [CONNECTION, CONTENT_LENGTH, EXPECT, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
    FRAMING.contains(name) || name == "keep-alive" || name == "proxy-connection"
}

fn value(text: &HeaderText, headers: &HeaderMap, certificate: Option<&[u8]>) -> Option<HeaderValue> {
    let mut value = Vec::new();
    for segment in text.segments() {
        match segment {
            ValuePart::Text(text) => value.extend_from_slice(text.as_bytes()),
            ValuePart::Expression(expression) => write(&mut value, expression, headers, certificate),
        }
    }
    HeaderValue::from_bytes(&value).ok()
}

fn write(out: &mut Vec<u8>, expression: &Expression, headers: &HeaderMap, certificate: Option<&[u8]>) {
    let mut found = match &expression.fetch {
        Fetch::Header(name) => last_item(headers, name).to_vec(),
        Fetch::ClientCertificate => certificate.unwrap_or_default().to_vec(),
    };
    for converter in &expression.converters {
        match converter {
            Converter::Lower => found.make_ascii_lowercase(),
            Converter::Base64 => found = STANDARD.encode(&found).into_bytes(),
        }
    }
    let quote = expression.quoted.then_some(b'"');
    out.extend(quote);
    for byte in found {
        match byte {
            b'"' | b'\\' | b']' if expression.escaped => out.extend([b'\\', byte]),
            // A field value cannot contain these bytes (RFC 9110 §5.5); a certificate's DER does.
            0..=8 | 10..=31 | 127 => out.extend(format!("%{byte:02X}").bytes()),
            _ => out.push(byte),
        }
    }
    out.extend(quote);
}

/// HAProxy's `hdr(name)`: the last of the comma-separated values of a field; empty if there is none.
fn last_item<'h>(headers: &'h HeaderMap, name: &str) -> &'h [u8] {
    let Some(line) = headers.get_all(name).iter().next_back() else { return &[] };
    let line = line.as_bytes();
    let (mut begin, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, byte) in line.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => begin = at + 1,
            _ => {}
        }
    }
    line.get(begin..).unwrap_or_default().trim_ascii()
}

#[cfg(test)]
mod tests {
    use router_table::policy::header_value::MessageDirection;

    use super::*;

    fn text(written: &str) -> HeaderText {
        HeaderText::parse(written, MessageDirection::Request).unwrap()
    }

    fn set(name: &str, written: &str) -> HeaderAction {
        HeaderAction { name: name.into(), change: HeaderChange::Set(text(written)) }
    }

    fn request(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn values_are_those_of_haproxy() {
        let mut headers = request(&[("x-mixed", "MiXeD"), ("quoted", "a \"b, c\" ]\\")]);
        headers.append("x-list", HeaderValue::from_static("one, two"));
        headers.append("x-list", HeaderValue::from_static("three, \"four, five\" "));
        let cases = [
            ("plain", "plain"),
            ("100%%", "100%"),
            ("%[req.hdr(X-Mixed)]", "MiXeD"),
            ("%[req.hdr(X-Mixed),lower]", "mixed"),
            ("%[req.hdr(X-Mixed),lower,base64]", "bWl4ZWQ="),
            ("%[req.hdr(X-Mixed),base64,lower]", "twlyzuq="),
            ("%{+Q}[req.hdr(X-Mixed)]", "\"MiXeD\""),
            ("<%[req.hdr(none)]>", "<>"),
            ("%{+Q}[req.hdr(none)]", "\"\""),
            ("%[req.hdr(X-List)]", "\"four, five\""),
            ("%{+E}[req.hdr(Quoted)]", "a \\\"b, c\\\" \\]\\\\"),
            ("%[ssl_c_der,base64]", "MAH/CQ=="),
            ("a%[req.hdr(X-Mixed)]b%[req.hdr(X-Mixed),lower]c", "aMiXeDbmixedc"),
        ];
        for (written, expected) in cases {
            let found = value(&text(written), &headers, Some(b"\x30\x01\xff\x09")).unwrap();
            assert_eq!(found.as_bytes(), expected.as_bytes(), "{written}");
        }
        let raw = value(&text("%[ssl_c_der]"), &headers, Some(b"0\x01\xff\x09\x7f")).unwrap();
        assert_eq!(raw.as_bytes(), b"0%01\xff\x09%7F");
        assert_eq!(value(&text("%[ssl_c_der]"), &headers, None).unwrap(), "");
    }

    #[test]
    fn actions_are_carried_out_in_order() {
        let mut headers = request(&[("x-a", "1"), ("x-gone", "1"), ("content-length", "5"), ("connection", "close")]);
        headers.append("x-a", HeaderValue::from_static("2"));
        let delete = |name: &str| HeaderAction { name: name.into(), change: HeaderChange::Delete };
        let actions = [
            set("X-B", "%[req.hdr(x-a)]"),
            set("X-A", "new"),
            set("x-c", "%[req.hdr(x-b)]%[req.hdr(x-a)]"),
            delete("X-Gone"),
            delete("X-Never"),
            delete("Content-Length"),
            set("Transfer-Encoding", "chunked"),
            set("Connection", "upgrade"),
        ];
        apply(&actions, &mut headers, None);
        let expected =
            request(&[("x-a", "new"), ("x-b", "2"), ("x-c", "2new"), ("content-length", "5"), ("connection", "close")]);
        assert_eq!(headers, expected);
    }
}
