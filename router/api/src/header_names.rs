//! Names of header fields (RFC 9110 §5.1).

/// Connection and framing fields (RFC 9110, 7.6.1; RFC 9112, 6): a proxy writes its own, regardless of actions.
pub(crate) const OWN: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a text is a field name: a token (RFC 9110, section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
