//! Reason phrases (RFC 9112 §4): what the endpoint, or whoever wrote an error page, has said, and nothing where nothing
//! was said. hyper has in a message's extensions what is not the status's usual phrase.

use http::{Extensions, StatusCode};
use hyper::ext::ReasonPhrase;

/// The phrase of a message.
pub fn of(status: StatusCode, extensions: &Extensions) -> &[u8] {
    match extensions.get::<ReasonPhrase>() {
        Some(phrase) => phrase.as_bytes(),
        None => status.canonical_reason().unwrap_or_default().as_bytes(),
    }
}

/// Leaves nothing in a message's extensions but its phrase.
pub fn keep(status: StatusCode, extensions: &mut Extensions) {
    let phrase = extensions.remove::<ReasonPhrase>();
    extensions.clear();
    if let Some(phrase) = phrase {
        extensions.insert(phrase);
    }
    complete(status, extensions);
}

/// Has a status without a usual phrase go without one: hyper would write `<none>`.
pub fn complete(status: StatusCode, extensions: &mut Extensions) {
    if status.canonical_reason().is_none() && extensions.get::<ReasonPhrase>().is_none() {
        extensions.insert(ReasonPhrase::from_static(b""));
    }
}
