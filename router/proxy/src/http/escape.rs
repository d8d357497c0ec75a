//! Percent-encodes bytes in a request target that a URI must not contain (RFC 3986 §2) but clients send, for example
//! JSON in a query. Browsers encode them (WHATWG URL §1.3, query and path percent-encode sets), and origin servers
//! treat both forms alike; `http::Uri` rejects them. The kernel data path passes such bytes on unchanged.

/// The target with visible ASCII that `http::Uri` rejects percent-encoded; `None` if there is none.
pub fn escaped(target: &[u8]) -> Option<Vec<u8>> {
    // Without an early exit the loop is vectorized.
    if !target.iter().fold(false, |found, byte| found | matches!(byte, b'"' | b'<' | b'>' | b'`')) {
        return None;
    }
    let mut escaped = Vec::with_capacity(target.len() + 16);
    let mut in_query = false;
    for byte in target {
        in_query |= *byte == b'?';
        match byte {
            b'<' => escaped.extend_from_slice(b"%3C"),
            b'>' => escaped.extend_from_slice(b"%3E"),
            b'"' if in_query => escaped.extend_from_slice(b"%22"),
            b'`' if !in_query => escaped.extend_from_slice(b"%60"),
            _ => escaped.push(*byte),
        }
    }
    (escaped.len() > target.len()).then_some(escaped)
}

#[cfg(test)]
mod tests;
