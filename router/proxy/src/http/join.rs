//! Values of fields that are made of others.

use bytes::Bytes;
use http::HeaderValue;

/// One value after the other, as one.
pub fn join<const N: usize>(parts: [&HeaderValue; N]) -> HeaderValue {
    // Of its very length: with room to spare `Bytes` would allocate once more.
    let mut joined = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| joined.extend_from_slice(part.as_bytes()));
    // Valid: bytes are checked each by itself (RFC 9110 §5.5 as `http` reads it), and those of the parts were.
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
