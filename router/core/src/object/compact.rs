//! What every object holds, in little room: labels and annotations, and the text of manifests.

use std::sync::Arc;

use super::Texts;

/// Texts by text, such as labels, in order. Most objects have one or two; a tree would keep room for eleven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextMap(Box<[(Arc<str>, Arc<str>)]>);

impl TextMap {
    /// The text of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find_map(|(known, text)| (known == key).then_some(text))
    }

    /// Keys and texts, in order of key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, text)| (&**key, &**text))
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.0 = Box::default();
    }

    /// Shares keys and texts with other maps.
    pub fn share(&mut self, texts: &mut Texts) {
        for (key, text) in &mut self.0 {
            texts.share(key);
            texts.share(text);
        }
    }

    /// The same with one text set.
    pub fn with(&self, key: &str, text: &str) -> Self {
        let others = self.iter().filter(|(known, _)| *known != key);
        others.chain([(key, text)]).map(|(key, text)| (key.to_owned(), text.to_owned())).collect()
    }
}

impl FromIterator<(String, String)> for TextMap {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(texts: I) -> Self {
        let mut texts: Vec<_> = texts.into_iter().map(|(key, text)| (key.into(), text.into())).collect();
        texts.sort();
        TextMap(texts.into())
    }
}

/// What nearly every manifest says. An index into this list stands for its piece in packed text; JSON text has no
/// control characters, so a byte below 0x20 can be nothing else. The longer piece stands before the shorter.
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

/// JSON text in which frequent pieces are single bytes; about half of the room.
#[derive(Clone, PartialEq, Eq)]
pub struct PackedJson(Arc<str>);

impl PackedJson {
    /// Packs text that `serde_json` wrote.
    pub fn new(json: &str) -> Self {
        let mut packed = String::with_capacity(json.len());
        let mut rest = json;
        while let Some(first) = rest.chars().next() {
            // Every piece begins with one of these, and few other characters do.
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

    /// The text as it was.
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
    }
}
