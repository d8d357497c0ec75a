//! Bytes in a request target that no URI may have (RFC 3986 §2), and clients send all the same: JSON in a query, above
//! all. Browsers percent-encode them (WHATWG URL §1.3, query and path percent-encode sets), origin servers read both
//! alike, and `http::Uri` takes no others. The kernel carries a connection with such bytes as they are.

/// The target with what `http::Uri` refuses of visible ASCII percent-encoded; `None` if there is nothing of it.
pub fn escaped(target: &[u8]) -> Option<Vec<u8>> {
    // Without an end in between, many bytes are looked at in one step.
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
