//! A compact copy of a request that may have to be sent again. Retries are rare, and a clone of the header map would
//! increment and decrement the reference count of each value.

use http::{Extensions, HeaderName, HeaderValue, Method, Request, Uri, Version};

use crate::http::upload::RequestBody;

/// A request without content. Part of each request's future, so it must be small.
#[derive(Debug)]
pub struct SavedRequest {
    method: Method,
    version: Version,
    extensions: Extensions,
    /// Length-prefixed pieces: the target, then a name and a value for each field.
    text: Vec<u8>,
}

/// Size of a length prefix in bytes.
const LENGTH: usize = size_of::<u32>();
/// Flag in the length of a sensitive value ([`HeaderValue::is_sensitive`]). No message has pieces that long.
const SENSITIVE: u32 = 1 << 31;

impl SavedRequest {
    /// Copies a request without its content.
    pub fn of(request: &Request<RequestBody>) -> Self {
        let (headers, uri) = (request.headers(), request.uri());
        let whole;
        let target = match uri.path_and_query() {
            Some(path) if uri.authority().is_none() => path.as_str(),
            _ => {
                whole = uri.to_string();
                &whole
            }
        };
        let field = |(name, value): (&HeaderName, &HeaderValue)| 2 * LENGTH + name.as_str().len() + value.len();
        let mut text = Vec::with_capacity(LENGTH + target.len() + headers.iter().map(field).sum::<usize>());
        put(&mut text, target.as_bytes(), 0);
        for (name, value) in headers {
            put(&mut text, name.as_str().as_bytes(), 0);
            put(&mut text, value.as_bytes(), if value.is_sensitive() { SENSITIVE } else { 0 });
        }
        let (method, extensions) = (request.method().clone(), request.extensions().clone());
        SavedRequest { method, version: request.version(), extensions, text }
    }

    /// Restores the request.
    pub fn request(self) -> Request<RequestBody> {
        let mut request = Request::new(RequestBody::default());
        let mut rest = &self.text[..];
        // All pieces come from a valid request.
        if let Some(Ok(uri)) = take(&mut rest).map(|(target, _)| Uri::try_from(target)) {
            *request.uri_mut() = uri;
        }
        while let (Some((name, _)), Some((value, flags))) = (take(&mut rest), take(&mut rest)) {
            if let (Ok(name), Ok(mut value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                value.set_sensitive(flags & SENSITIVE != 0);
                request.headers_mut().append(name, value);
            }
        }
        *request.method_mut() = self.method;
        *request.version_mut() = self.version;
        *request.extensions_mut() = self.extensions;
        request
    }
}

fn put(text: &mut Vec<u8>, piece: &[u8], flags: u32) {
    text.extend_from_slice(&(piece.len() as u32 | flags).to_ne_bytes());
    text.extend_from_slice(piece);
}

fn take<'t>(rest: &mut &'t [u8]) -> Option<(&'t [u8], u32)> {
    let (length, behind) = rest.split_first_chunk::<LENGTH>()?;
    let length = u32::from_ne_bytes(*length);
    let (piece, behind) = behind.split_at_checked((length & !SENSITIVE) as usize)?;
    *rest = behind;
    Some((piece, length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Fields of one name keep their order; the order of names is that of the original map.
        #[test]
        fn a_request_comes_back_as_it_was(
            target in "/[a-z]{0,9}(\\?[a-z=]{0,5})?|https://shop[.]test:8443/[a-z]{0,9}",
            fields in prop::collection::vec(
                ("[a-c]|x-[a-z]{1,3}|host|cookie", prop::collection::vec(32_u8..127, 0..20), any::<bool>()), 0..20),
        ) {
            let mut request = Request::put(target).version(Version::HTTP_10).body(RequestBody::default()).unwrap();
            for (name, value, is_sensitive) in &fields {
                let mut value = HeaderValue::from_bytes(value).unwrap();
                value.set_sensitive(*is_sensitive);
                request.headers_mut().append(HeaderName::try_from(name).unwrap(), value);
            }
            request.extensions_mut().insert(7_u8);
            let back = SavedRequest::of(&request).request();
            prop_assert_eq!(back.method(), Method::PUT);
            prop_assert_eq!((back.uri(), back.version()), (request.uri(), request.version()));
            prop_assert_eq!(back.extensions().get::<u8>(), Some(&7));
            let all = |request: &Request<RequestBody>| -> Vec<(HeaderName, HeaderValue, bool)> {
                let field = |(name, value): (&HeaderName, &HeaderValue)| (name.clone(), value.clone(), value.is_sensitive());
                request.headers().iter().map(field).collect()
            };
            prop_assert_eq!(all(&back), all(&request));
        }
    }
}
