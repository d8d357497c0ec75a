//! Concatenates field values.

use bytes::Bytes;
use http::HeaderValue;

/// Concatenates values.
pub fn join<const N: usize>(parts: [&HeaderValue; N]) -> HeaderValue {
    // With exact capacity: otherwise `Bytes` would allocate once more.
    let mut joined = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| joined.extend_from_slice(part.as_bytes()));
    // Valid: `http` validates bytes individually (RFC 9110 §5.5), and the parts are valid.
    HeaderValue::from_maybe_shared(Bytes::from(joined)).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joined_value_is_one_that_http_accepts() {
        let every: Vec<u8> = (0..=u8::MAX).filter(|byte| HeaderValue::from_bytes(&[*byte]).is_ok()).collect();
        let parts = every.chunks(100).map(|part| HeaderValue::from_bytes(part).unwrap());
        let [a, b, c]: [HeaderValue; 3] = parts.collect::<Vec<_>>().try_into().unwrap();
        let empty = HeaderValue::from_static("");
        let joined = join([&a, &empty, &b, &c]);
        assert_eq!(joined, HeaderValue::from_bytes(&every).unwrap());
        assert!(!joined.is_sensitive());
        assert!(join([]).is_empty());
    }
}
