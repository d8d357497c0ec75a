//! Compact storage of labels and of manifests.

use std::fmt::{self, Write};
use std::io;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};

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

/// Appends a text after its length.
fn put(text: &str, packed: &mut String) {
    // Writing to a `String` never fails.
    let _ = write!(packed, "{}:{text}", text.len());
}

/// The first text that [`put`] wrote, and the rest.
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
        let mut packed = String::new();
        texts.iter().flat_map(|(key, text)| [key, text]).for_each(|text| put(text, &mut packed));
        TextMap(packed.into())
    }
}

impl fmt::Debug for TextMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Members whose texts many objects have in common, unless they are longer than [`MAX_COMMON`].
const COMMON: [&str; 11] = [
    "apiVersion",
    "controllerName",
    "group",
    "insecureEdgeTerminationPolicy",
    "kind",
    "protocol",
    "reason",
    "status",
    "termination",
    "type",
    "wildcardPolicy",
];
/// Maximum number of bytes of a text in a shape: these members may hold anything.
const MAX_COMMON: usize = 64;
/// The shapes in use.
static SHAPES: LazyLock<Mutex<Interner>> = LazyLock::new(Mutex::default);
/// Stands for a text in a shape: JSON has no control characters.
const HOLE: u8 = 1;

/// JSON of an object or a status, split into what those of one template have in common, and its own texts. A fraction
/// of the size of a [`Value`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CompactJson {
    /// The JSON text, with a [`HOLE`] for each of `texts`. Equal shapes are stored once.
    shape: Arc<str>,
    /// The texts, in order, each after its length: `3:app4:shop`.
    texts: Box<str>,
}

impl CompactJson {
    /// Splits the JSON of a value.
    pub fn new(value: &(impl Serialize + ?Sized)) -> Self {
        let (mut shape, mut texts) = (Vec::with_capacity(512), String::with_capacity(256));
        let splitter = Splitter {
            texts: &mut texts,
            text: String::new(),
            has_escapes: false,
            is_name: false,
            is_common: Vec::new(),
        };
        // Neither writing to a vector nor our values fail.
        drop(value.serialize(&mut Serializer::with_formatter(&mut shape, splitter)));
        // JSON is UTF-8.
        let shape = std::str::from_utf8(&shape).unwrap_or_default();
        let shape = SHAPES.lock().unwrap_or_else(PoisonError::into_inner).shared(shape);
        CompactJson { shape, texts: texts.into() }
    }

    /// The value; null for the default.
    pub fn value(&self) -> Value {
        // The text was made from a value, so it parses.
        serde_json::from_str(&self.text()).unwrap_or_default()
    }

    /// Whether any mapping in the value may have this member.
    pub fn may_have(&self, member: &str) -> bool {
        self.shape.contains(&format!("\"{member}\":"))
    }

    /// The value as JSON text.
    pub(super) fn text(&self) -> String {
        let mut json = Vec::with_capacity(self.shape.len() + 2 * self.texts.len());
        let mut rest = &*self.texts;
        for (i, part) in self.shape.split(char::from(HOLE)).enumerate() {
            if let Some((text, after)) = take(rest).filter(|_| i > 0) {
                // Writing a text to a vector never fails.
                drop(serde_json::to_writer(&mut json, text));
                rest = after;
            }
            json.extend_from_slice(part.as_bytes());
        }
        String::from_utf8(json).unwrap_or_default()
    }
}

/// Prints nothing of the value, which may contain keys.
impl fmt::Debug for CompactJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompactJson(..)")
    }
}

/// Writes JSON as a shape, and collects its texts.
struct Splitter<'t> {
    texts: &'t mut String,
    /// The text that is being written.
    text: String,
    /// Whether JSON escapes any of its characters.
    has_escapes: bool,
    is_name: bool,
    /// For the member that is being written, and those around it: whether its short texts belong to the shape.
    is_common: Vec<bool>,
}

impl Formatter for Splitter<'_> {
    fn begin_string<W: io::Write + ?Sized>(&mut self, shape: &mut W) -> io::Result<()> {
        self.text.clear();
        self.has_escapes = false;
        if self.is_name { CompactFormatter.begin_string(shape) } else { Ok(()) }
    }

    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, shape: &mut W, fragment: &str) -> io::Result<()> {
        self.text.push_str(fragment);
        if self.is_name { CompactFormatter.write_string_fragment(shape, fragment) } else { Ok(()) }
    }

    fn write_char_escape<W: io::Write + ?Sized>(&mut self, shape: &mut W, escape: CharEscape) -> io::Result<()> {
        self.has_escapes = true;
        self.text.push(match &escape {
            CharEscape::Quote => '"',
            CharEscape::ReverseSolidus => '\\',
            CharEscape::Solidus => '/',
            CharEscape::Backspace => '\u{8}',
            CharEscape::FormFeed => '\u{c}',
            CharEscape::LineFeed => '\n',
            CharEscape::CarriageReturn => '\r',
            CharEscape::Tab => '\t',
            CharEscape::AsciiControl(byte) => char::from(*byte),
        });
        if self.is_name { CompactFormatter.write_char_escape(shape, escape) } else { Ok(()) }
    }

    fn end_string<W: io::Write + ?Sized>(&mut self, shape: &mut W) -> io::Result<()> {
        if self.is_name {
            return CompactFormatter.end_string(shape);
        }
        if self.is_common.last() == Some(&true) && self.text.len() <= MAX_COMMON {
            if self.has_escapes {
                return Ok(serde_json::to_writer(shape, &self.text)?);
            }
            return [&b"\""[..], self.text.as_bytes(), b"\""].into_iter().try_for_each(|part| shape.write_all(part));
        }
        put(&self.text, self.texts);
        shape.write_all(&[HOLE])
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, shape: &mut W, first: bool) -> io::Result<()> {
        self.is_name = true;
        CompactFormatter.begin_object_key(shape, first)
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, shape: &mut W) -> io::Result<()> {
        self.is_name = false;
        self.is_common.push(COMMON.contains(&&*self.text));
        CompactFormatter.begin_object_value(shape)
    }

    fn end_object_value<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_common.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_comes_back_as_it_was() {
        let value = json!({
            "apiVersion": "route.openshift.io/v1", "kind": "Route",
            "metadata": {
                "name": "a", "namespace": "", "annotations": { "x": "line\n\u{1}\u{1f}\t\r\u{8}\u{c}\\/\"quoted\"3:{}", "\u{1}é\"": "ü" },
                "labels": {}, "finalizers": [], "generation": 3, "deletionTimestamp": null,
            },
            "spec": { "host": "h.test", "to": { "kind": "Service", "name": "web", "weight": 100 }, "f": [1.5, -1, true, ["a", "b"]],
                "tls": { "termination": "passthrough" }, "type": ["t", { "kind": ["\u{1}"] }], "wildcardPolicy": "None" },
        });
        for value in [value, json!("a"), json!([]), json!(null)] {
            assert_eq!(CompactJson::new(&value).text(), value.to_string());
        }
    }

    #[test]
    fn objects_of_one_template_share_their_shape() {
        let route = |name: &str| json!({ "kind": "Route", "metadata": { "name": name }, "spec": { "host": format!("{name}.test") } });
        let (one, other) = (CompactJson::new(&route("a")), CompactJson::new(&route("b")));
        assert!(Arc::ptr_eq(&one.shape, &other.shape));
        assert_ne!(one.text(), other.text());
        assert_eq!(&*one.texts, "1:a6:a.test");
        assert!(one.may_have("host") && !one.may_have("status"));
    }

    #[test]
    fn a_long_text_of_a_common_member_does_not_part_shapes() {
        let told = |reason: &str| CompactJson::new(&json!({ "status": "True", "reason": reason }));
        let long = |letter: &str| told(&letter.repeat(MAX_COMMON + 1));
        assert!(Arc::ptr_eq(&long("a").shape, &long("\"").shape));
        assert!(!Arc::ptr_eq(&told("a").shape, &told("\"").shape));
        for told in [long("\""), told("\"\n")] {
            assert_eq!(CompactJson::new(&told.value()), told);
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
