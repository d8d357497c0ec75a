//! Compact storage of labels and of the text of manifests.

use std::fmt;
use std::sync::Arc;

use super::interner::Interner;

/// A map of texts, such as labels, in order of key. Stored as one text that equal maps share, in which the length
/// precedes each key and value: `3:app4:shop`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TextMap(Arc<str>);

impl TextMap {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find_map(|(known, text)| (known == key).then_some(text))
    }

    /// Keys and values, in order of key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (key, after) = take(rest)?;
            let (text, after) = take(after)?;
            rest = after;
            Some((key, text))
        })
    }

    /// Shares the storage with equal maps.
    pub fn share(&mut self, texts: &mut Interner) {
        if !self.0.is_empty() {
            texts.share(&mut self.0);
        }
    }

    /// A copy with one value set.
    pub fn with(&self, key: &str, text: &str) -> Self {
        let others = self.iter().filter(|(known, _)| *known != key);
        others.chain([(key, text)]).map(|(key, text)| (key.to_owned(), text.to_owned())).collect()
    }
}

/// The first text of a packed map, and the rest.
fn take(packed: &str) -> Option<(&str, &str)> {
    let (length, rest) = packed.split_once(':')?;
    rest.split_at_checked(length.parse().ok()?)
}

impl FromIterator<(String, String)> for TextMap {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(texts: I) -> Self {
        let mut texts: Vec<_> = texts.into_iter().collect();
        if texts.is_empty() {
            return TextMap::default();
        }
        texts.sort();
        let packed: String =
            texts.iter().flat_map(|(key, text)| [key, text]).map(|text| format!("{}:{text}", text.len())).collect();
        TextMap(packed.into())
    }
}

impl fmt::Debug for TextMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Frequent pieces of manifests. In packed text the byte `index + 1` stands for a piece; JSON text has no control
/// characters, so bytes below 0x20 are unambiguous. A longer piece comes before its prefixes.
const PIECES: [&str; 29] = [
    "{\"apiVersion\":\"route.openshift.io/v1\",\"kind\":\"Route\",\"metadata\":{",
    "{\"apiVersion\":\"operator.openshift.io/v1\",\"kind\":\"IngressController\",\"metadata\":{",
    "\"kubectl.kubernetes.io/last-applied-configuration\":\"",
    "\"openshift.io/host.generated\":\"true\"",
    "\"haproxy.router.openshift.io/",
    "\"to\":{\"kind\":\"Service\",\"name\":\"",
    "\"insecureEdgeTerminationPolicy\":\"",
    "\"app.kubernetes.io/",
    "\"wildcardPolicy\":\"None\"",
    "\"wildcardPolicy\":\"Subdomain\"",
    "\"creationTimestamp\":\"",
    "\"tls\":{\"termination\":\"",
    "\"resourceVersion\":\"",
    "\"alternateBackends\":[",
    "\"port\":{\"targetPort\":",
    "passthrough\"",
    "\"annotations\":{",
    "\"generation\":",
    "\"namespace\":\"",
    "\"subdomain\":\"",
    "\"weight\":100",
    "\"labels\":{",
    "Redirect\"",
    "\"spec\":{",
    "\"host\":\"",
    "\"name\":\"",
    "\"path\":\"",
    "\"uid\":\"",
    "},",
];

/// JSON text in which single bytes replace frequent pieces; about half the size.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PackedJson(Arc<str>);

/// For each byte, the pieces that have it as their first and as their second: one bit each, that of the first piece
/// lowest.
const BEGINNINGS: [[u32; 256]; 2] = {
    let mut beginnings = [[0; 256]; 2];
    let mut at = 0;
    while at < PIECES.len() {
        let piece = PIECES[at].as_bytes();
        beginnings[0][piece[0] as usize] |= 1 << at;
        beginnings[1][piece[1] as usize] |= 1 << at;
        at += 1;
    }
    beginnings
};

/// The piece that a text begins with: its index and its length.
fn piece_of(text: &[u8]) -> Option<(u8, usize)> {
    let [first, second, ..] = text else { return None };
    let [firsts, seconds] = &BEGINNINGS;
    let mut candidates = firsts[usize::from(*first)] & seconds[usize::from(*second)];
    while candidates != 0 {
        let at = candidates.trailing_zeros();
        let piece = PIECES.get(at as usize)?;
        if text.starts_with(piece.as_bytes()) {
            return Some((u8::try_from(at).ok()?, piece.len()));
        }
        candidates &= candidates - 1;
    }
    None
}

impl PackedJson {
    /// Packs text that `serde_json` wrote.
    pub fn new(json: &str) -> Self {
        let mut packed = String::with_capacity(json.len());
        // Only these characters begin a piece.
        let (mut start, mut at) = (0, 0);
        let bytes = json.as_bytes();
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match piece_of(rest) {
                Some((index, len)) => {
                    packed.push_str(json.get(start..at).unwrap_or_default());
                    packed.push(char::from(index + 1));
                    at += len;
                    start = at;
                }
                None => at += 1,
            }
        }
        packed.push_str(json.get(start..).unwrap_or_default());
        PackedJson(packed.into())
    }

    /// The original text.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.0.len() * 2);
        for letter in self.0.chars() {
            match (letter as usize).checked_sub(1).and_then(|index| PIECES.get(index)) {
                Some(piece) => text.push_str(piece),
                None => text.push(letter),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packed_text_comes_back_as_it_was() {
        let value = json!({
            "apiVersion": "route.openshift.io/v1", "kind": "Route",
            "metadata": { "name": "a", "namespace": "b", "annotations": { "x": "line\n\u{1}\u{1f}\t\"quoted\"{}", "é": "ü" } },
            "spec": { "host": "h.test", "to": { "kind": "Service", "name": "web", "weight": 100 },
                "tls": { "termination": "passthrough" }, "wildcardPolicy": "None" },
        });
        let text = value.to_string();
        let packed = PackedJson::new(&text);
        assert_eq!(packed.text(), text);
        assert!(packed.0.len() * 3 < text.len() * 2, "{} of {} bytes", packed.0.len(), text.len());
    }

    #[test]
    fn pieces_are_never_hidden_by_a_shorter_one() {
        assert!(PIECES.len() < 0x20);
        for (i, piece) in PIECES.iter().enumerate() {
            assert!(piece.len() > 1 && piece.is_ascii(), "{piece}");
            assert_eq!(PackedJson::new(piece).0.len(), 1, "{piece}");
            assert!(!PIECES[..i].iter().any(|earlier| piece.starts_with(earlier)), "{piece} can never be taken");
        }
    }

    #[test]
    fn texts_are_found_in_any_order() {
        let map: TextMap = [("b", "2"), ("a", "1")].map(|(k, t)| (k.to_owned(), t.to_owned())).into_iter().collect();
        assert_eq!((map.get("a"), map.get("b"), map.get("c")), (Some("1"), Some("2"), None));
        let with = map.with("a", "3").with("c", "4");
        assert_eq!(with.iter().collect::<Vec<_>>(), [("a", "3"), ("b", "2"), ("c", "4")]);
        assert_eq!(TextMap::default().iter().count(), 0);
    }

    #[test]
    fn texts_may_hold_anything() {
        let odd = [("", "1:"), ("3:é", "\u{0}:\n"), ("a", ""), ("b", "ü\u{1f980}")];
        let map: TextMap = odd.map(|(k, t)| (k.to_owned(), t.to_owned())).into_iter().collect();
        assert_eq!(map.iter().collect::<Vec<_>>(), odd);
    }
}
