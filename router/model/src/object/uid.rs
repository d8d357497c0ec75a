//! Compact `metadata.uid`: API servers assign UUIDs.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Bytes per group of a UUID's text, between its dashes.
const GROUPS: [usize; 5] = [4, 2, 2, 2, 6];

/// A uid; ordered and displayed as its text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Uid(UidRepr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum UidRepr {
    /// The bytes of a UUID in canonical form: RFC 9562 section 4, lower case.
    Uuid([u8; 16]),
    /// Any other text; empty when absent.
    Text(Arc<str>),
}

impl Uid {
    /// Whether the object has no uid.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, UidRepr::Text(text) if text.is_empty())
    }
}

impl Default for Uid {
    fn default() -> Self {
        Uid(UidRepr::Text(Arc::default()))
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        match uuid(text) {
            Some(bytes) => Uid(UidRepr::Uuid(bytes)),
            None if text.is_empty() => Uid::default(),
            None => Uid(UidRepr::Text(text.into())),
        }
    }
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut places = bytes.iter_mut();
    let mut groups = text.split('-');
    for length in GROUPS {
        let (pairs, rest) = groups.next()?.as_bytes().as_chunks::<2>();
        if pairs.len() != length || !rest.is_empty() {
            return None;
        }
        for [high, low] in pairs {
            *places.next()? = digit(*high)? << 4 | digit(*low)?;
        }
    }
    groups.next().is_none().then_some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = match &self.0 {
            UidRepr::Text(text) => return f.write_str(text),
            UidRepr::Uuid(bytes) => bytes,
        };
        let mut bytes = bytes.iter();
        for (i, length) in GROUPS.into_iter().enumerate() {
            if i > 0 {
                f.write_str("-")?;
            }
            bytes.by_ref().take(length).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl Ord for Uid {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            // Lower-case hexadecimal texts of equal length have the order of their bytes.
            (UidRepr::Uuid(one), UidRepr::Uuid(other)) => one.cmp(other),
            (UidRepr::Text(one), UidRepr::Text(other)) => one.cmp(other),
            _ => self.to_string().cmp(&other.to_string()),
        }
    }
}

impl PartialOrd for Uid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_shown_and_ordered_as_their_texts() {
        let texts = [
            "",
            "0",
            "00000000-0000-4000-8000-0000000000ff",
            "00000000-0000-4000-8000-0000000000FF",
            "00000000-0000-4000-8000-0000000000fg",
            "00000000-0000-4000-8000-0000000000ff-",
            "00000000-0000-4000-8000-0000000000f",
            "000000000000-4000-8000-0000000000ff",
            "000000000-000-4000-8000-0000000000ff",
            "9fffffff-0000-4000-8000-000000000000",
            "a0000000-0000-4000-8000-000000000000",
            "é",
        ];
        for a in texts {
            assert_eq!(Uid::from(a).to_string(), a);
            assert_eq!(Uid::from(a).is_empty(), a.is_empty());
            for b in texts {
                assert_eq!(Uid::from(a).cmp(&Uid::from(b)), a.cmp(b), "{a} {b}");
                assert_eq!(Uid::from(a) == Uid::from(b), a == b, "{a} {b}");
            }
        }
        assert!(matches!(Uid::from(texts[2]).0, UidRepr::Uuid(_)));
    }
}
