//! Reason phrases (RFC 9112 §4): those of the endpoint or a custom page are kept, and an absent phrase stays absent.
//! hyper stores a phrase in the extensions if it differs from the status's canonical one.

use http::{Extensions, StatusCode};
use hyper::ext::ReasonPhrase;

/// The phrase of a message.
pub fn of(status: StatusCode, extensions: &Extensions) -> &[u8] {
    match extensions.get::<ReasonPhrase>() {
        Some(phrase) => phrase.as_bytes(),
        None => status.canonical_reason().unwrap_or_default().as_bytes(),
    }
}

/// Removes all extensions but the phrase.
pub fn keep(status: StatusCode, extensions: &mut Extensions) {
    let phrase = extensions.remove::<ReasonPhrase>();
    extensions.clear();
    if let Some(phrase) = phrase {
        extensions.insert(phrase);
    }
    complete(status, extensions);
}

/// Sets an empty phrase for a status without a canonical one: hyper would write `<none>`.
pub fn complete(status: StatusCode, extensions: &mut Extensions) {
    if status.canonical_reason().is_none() && extensions.get::<ReasonPhrase>().is_none() {
        extensions.insert(ReasonPhrase::from_static(b""));
    }
}
