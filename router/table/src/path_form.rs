//! The form in which request paths are compared and forwarded: as the client sent them, or normalised.
//!
//! The normal form is Envoy's with `normalize_path` and `merge_slashes` of its HttpConnectionManager and the default
//! `path_with_escaped_slashes_action`, the settings that Contour uses:
//!
//! 1. `\` becomes `/`, escapes of unreserved characters are decoded (RFC 3986 §6.2.2.2), and dot segments are resolved
//!    (§5.2.4), also those with escaped dots; `..` at the root is removed. Characters that are not allowed in a path
//!    are escaped.
//! 2. Adjacent slashes are merged.
//!
//! Other escapes are unchanged, `%2F` and `%5C` among them, including the case of their digits. A `;` and the text
//! after it are part of their segment.

use std::borrow::Cow;

/// The form in which paths are compared and forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathForm {
    /// As the client sent them.
    #[default]
    AsSent,
    /// In normal form.
    Normal {
        /// Whether adjacent slashes are merged.
        merge_slashes: bool,
    },
}

impl PathForm {
    /// A path, without its query, in this form; borrowed if it already has the form.
    pub fn of(self, path: &str) -> Cow<'_, str> {
        match self {
            PathForm::Normal { merge_slashes } if !is_normal(path.as_bytes(), merge_slashes) => {
                Cow::Owned(normal(path.as_bytes(), merge_slashes))
            }
            _ => Cow::Borrowed(path),
        }
    }
}

/// A router's path settings; the default is that of a router without settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSettings {
    /// Whether Routes and Gateway API objects also use the normal form.
    pub normalise: bool,
    /// Whether the normal form keeps adjacent slashes.
    pub keep_slashes: bool,
}

impl PathSettings {
    /// The form for Routes and Gateway API objects: as sent, unless the router normalises.
    pub fn usual(self) -> PathForm {
        if self.normalise { self.normal() } else { PathForm::AsSent }
    }

    /// The form for Contour's objects: always the normal one.
    pub fn normal(self) -> PathForm {
        PathForm::Normal { merge_slashes: !self.keep_slashes }
    }
}

/// Role of a byte in the normalisation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    /// Unchanged, escaped or not.
    Plain,
    /// Unchanged; its escape is decoded. Includes the dot, which may also be part of a dot segment.
    Unreserved,
    /// Begins a segment.
    Slash,
    /// Begins an escape, or is literal.
    Percent,
    /// Becomes a slash.
    Backslash,
    /// Must be escaped.
    Escaped,
}

/// The class of each byte. Unreserved: RFC 3986 §2.3. Escaped: those that Chromium's URL library, which Envoy uses,
/// escapes in paths.
const CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Escaped; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        classes[byte as usize] = match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => ByteClass::Unreserved,
            b'/' => ByteClass::Slash,
            b'%' => ByteClass::Percent,
            b'\\' => ByteClass::Backslash,
            b'"' | b'#' | b'<' | b'>' | b'?' | b'^' | b'`' | b'{' | b'|' | b'}' => ByteClass::Escaped,
            _ => ByteClass::Plain,
        };
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> ByteClass {
    CLASSES[usize::from(byte)]
}

/// Whether a path is already normalised, in one scan. Text that does not begin with a slash is not a path, and is left
/// unchanged.
fn is_normal(path: &[u8], merge_slashes: bool) -> bool {
    let [b'/', ..] = path else { return true };
    path.iter().enumerate().all(|(at, byte)| {
        let rest = || path.get(at + 1..).unwrap_or_default();
        match class(*byte) {
            ByteClass::Plain | ByteClass::Unreserved => true,
            ByteClass::Backslash | ByteClass::Escaped => false,
            ByteClass::Percent => octet(rest()).is_none_or(|octet| class(octet) != ByteClass::Unreserved),
            ByteClass::Slash => match rest() {
                [b'/', ..] => !merge_slashes,
                [b'.'] | [b'.', b'/', ..] | [b'.', b'.'] | [b'.', b'.', b'/', ..] => false,
                _ => true,
            },
        }
    })
}

/// The byte that the two hexadecimal digits at the beginning of a text encode.
fn octet(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let [high, low, ..] = text else { return None };
    Some(digit(*high)? << 4 | digit(*low)?)
}

/// The normal form of a path that begins with a slash.
fn normal(path: &[u8], merge_slashes: bool) -> String {
    // A byte becomes at most three.
    let mut out: Vec<u8> = Vec::with_capacity(path.len() + 16);
    // Positions of each `%` that begins no escape.
    let mut bare: Vec<usize> = Vec::new();
    let mut rest = path;
    while let Some((byte, after)) = rest.split_first() {
        if out.last() == Some(&b'/')
            && let Some((climbs, after)) = dot_segment(rest)
        {
            if climbs {
                climb(&mut out);
                while bare.last().is_some_and(|at| *at >= out.len()) {
                    bare.pop();
                }
            }
            rest = after;
            continue;
        }
        rest = after;
        match class(*byte) {
            ByteClass::Plain | ByteClass::Unreserved | ByteClass::Slash => out.push(*byte),
            ByteClass::Backslash => out.push(b'/'),
            ByteClass::Escaped => escape(*byte, &mut out),
            ByteClass::Percent => match octet(after) {
                Some(octet) if class(octet) == ByteClass::Unreserved => {
                    out.push(octet);
                    rest = after.get(2..).unwrap_or_default();
                }
                Some(_) => out.push(b'%'),
                None => {
                    bare.push(out.len());
                    out.push(b'%');
                }
            },
        }
    }
    finished(&out, &bare, merge_slashes)
}

/// The dot segment at the beginning of a text: whether it is `..`, and the text after it and its slash.
fn dot_segment(text: &[u8]) -> Option<(bool, &[u8])> {
    let dot = |text: &'_ [u8]| match text {
        [b'.', ..] => Some(1),
        [b'%', b'2', b'e' | b'E', ..] => Some(3),
        _ => None,
    };
    let mut rest = text.get(dot(text)?..)?;
    let climbs = dot(rest);
    rest = rest.get(climbs.unwrap_or_default()..)?;
    match rest {
        [] => Some((climbs.is_some(), rest)),
        [b'/' | b'\\', after @ ..] => Some((climbs.is_some(), after)),
        _ => None,
    }
}

/// Removes the last segment of a path that ends with a slash; the root is kept.
fn climb(out: &mut Vec<u8>) {
    if out.len() > 1 {
        out.pop();
        out.truncate(out.iter().rposition(|byte| *byte == b'/').map_or(1, |at| at + 1));
    }
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value & 15)];
    out.extend([b'%', digit(byte >> 4), digit(byte)]);
}

/// Merges slashes, and escapes each bare `%` that would begin an escape together with the decoded bytes after it.
fn finished(out: &[u8], bare: &[usize], merge_slashes: bool) -> String {
    let mut bare = bare.iter().peekable();
    let mut path = String::with_capacity(out.len());
    for (at, byte) in out.iter().enumerate() {
        if merge_slashes && *byte == b'/' && path.ends_with('/') {
            continue;
        }
        path.push(char::from(*byte));
        if bare.next_if(|bare| **bare == at).is_some() && octet(out.get(at + 1..).unwrap_or_default()).is_some() {
            path.push_str("25");
        }
    }
    path
}

#[cfg(test)]
mod tests;
