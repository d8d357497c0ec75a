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
#[derive(Clone, PartialEq, Eq)]
pub struct PackedJson(Arc<str>);

impl PackedJson {
    /// Packs text that `serde_json` wrote.
    pub fn new(json: &str) -> Self {
        let mut packed = String::with_capacity(json.len());
        let mut rest = json;
        while let Some(first) = rest.chars().next() {
            // Only these characters begin a piece.
            let pieces = matches!(first, '"' | '{' | '}' | 'p' | 'R').then_some(PIECES.iter()).into_iter().flatten();
            match pieces.zip(1u8..).find_map(|(piece, code)| Some((rest.strip_prefix(piece)?, code))) {
                Some((tail, code)) => {
                    packed.push(char::from(code));
                    rest = tail;
                }
                None => {
                    packed.push(first);
                    rest = rest.get(first.len_utf8()..).unwrap_or_default();
                }
            }
        }
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
    fn pieces_are_found_by_their_first_letter_and_never_hidden_by_a_shorter_one() {
        assert!(PIECES.len() < 0x20);
        for (i, piece) in PIECES.iter().enumerate() {
            assert!(piece.starts_with(['"', '{', '}', 'p', 'R']), "{piece}");
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
