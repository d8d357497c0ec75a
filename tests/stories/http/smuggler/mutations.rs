//! The spellings of `Transfer-Encoding: chunked` of the public tool “smuggler” (github.com/defparam/smuggler), by its
//! rules: one odd byte at one place or the same byte at two, for certain bytes, and some individual spellings.

use std::collections::HashSet;

/// A set of the tool: its name, its generator, and its number of spellings.
type Set = (&'static str, fn() -> Vec<Mutation>, usize);

const SETS: [Set; 3] = [("default", default, 134), ("exhaustive", exhaustive, 668), ("doubles", doubles, 966)];

/// One or more lines of a head.
pub struct Mutation {
    /// The tool's name for it, with that of its set.
    pub name: String,
    /// Its characters stand for bytes, as in Latin-1.
    line: String,
}

impl Mutation {
    /// Encoded with one byte per character.
    pub fn bytes(&self) -> Vec<u8> {
        self.line.chars().map(|character| u8::try_from(character).unwrap_or(b'?')).collect()
    }

    /// Encoded as the tool sends it: characters beyond ASCII are two bytes.
    pub fn utf8(&self) -> &[u8] {
        self.line.as_bytes()
    }
}

/// All spellings, set by set.
pub fn all() -> Vec<Mutation> {
    SETS.into_iter().flat_map(|(_, set, _)| set()).collect()
}

/// Positions where a byte may replace `%`.
const PLACES: [(&str, &str); 4] = [
    ("midspace", "Transfer-Encoding:%chunked"),
    ("postspace", "Transfer-Encoding%: chunked"),
    ("prespace", "%Transfer-Encoding: chunked"),
    ("endspace", "Transfer-Encoding: chunked%"),
];

/// Positions where it may split a line, or merge two.
const AMONG_LINES: [(&str, &str); 6] = [
    ("xprespace", "X: X%Transfer-Encoding: chunked"),
    ("endspacex", "Transfer-Encoding: chunked%X: X"),
    ("rxprespace", "X: X\r%Transfer-Encoding: chunked"),
    ("xnprespace", "X: X%\nTransfer-Encoding: chunked"),
    ("endspacerx", "Transfer-Encoding: chunked\r%X: X"),
    ("endspacexn", "Transfer-Encoding: chunked%\nX: X"),
];

/// Bytes that parsers are known to treat as blanks or line ends, and some others.
const BLANKS: [u8; 13] = [0x01, 0x04, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1f, 0x20, 0x7f, 0xa0, 0xff];

const BY_HAND: [(&str, &str); 4] = [
    ("nameprefix1", " Transfer-Encoding: chunked"),
    ("tabprefix1", "Transfer-Encoding:\tchunked"),
    ("tabprefix2", "Transfer-Encoding\t:\tchunked"),
    ("space1", "Transfer-Encoding : chunked"),
];

const MORE_BY_HAND: [(&str, &str); 24] = [
    ("spacejoin1", "Transfer Encoding: chunked"),
    ("underjoin1", "Transfer_Encoding: chunked"),
    ("smashed", "Transfer Encoding:chunked"),
    ("valueprefix1", "Transfer-Encoding:  chunked"),
    ("vertprefix1", "Transfer-Encoding:\x0bchunked"),
    ("commaCow", "Transfer-Encoding: chunked, cow"),
    ("cowComma", "Transfer-Encoding: cow, chunked"),
    ("contentEnc", "Content-Encoding: chunked"),
    ("linewrapped1", "Transfer-Encoding:\n chunked"),
    ("quoted", "Transfer-Encoding: \"chunked\""),
    ("aposed", "Transfer-Encoding: 'chunked'"),
    ("lazygrep", "Transfer-Encoding: chunk"),
    ("sarcasm", "TrAnSFer-EnCODinG: cHuNkeD"),
    ("yelling", "TRANSFER-ENCODING: CHUNKED"),
    ("0dsuffix", "Transfer-Encoding: chunked\r"),
    ("tabsuffix", "Transfer-Encoding: chunked\t"),
    ("revdualchunk", "Transfer-Encoding: cow\r\nTransfer-Encoding: chunked"),
    ("0dspam", "Transfer\r-Encoding: chunked"),
    ("nested", "Transfer-Encoding: cow chunked bar"),
    ("spaceFF", "Transfer-Encoding:\u{ff}chunked"),
    ("accentCH", "Transfer-Encoding: ch\u{96}nked"),
    ("accentTE", "Transf\u{82}r-Encoding: chunked"),
    ("x-rout", "X:X\rTransfer-Encoding: chunked"),
    ("x-nout", "X:X\nTransfer-Encoding: chunked"),
];

/// Two places of one byte: before and after the name, before and after the value.
const PAIRS: [(&str, &str); 6] = [
    ("%-%-XX-XX", "%Transfer-Encoding%: chunked"),
    ("%-XX-%-XX", "%Transfer-Encoding:%chunked"),
    ("%-XX-XX-%", "%Transfer-Encoding: chunked%"),
    ("XX-%-%-XX", "Transfer-Encoding%:%chunked"),
    ("XX-%-XX-%", "Transfer-Encoding%: chunked%"),
    ("XX-XX-%-%", "Transfer-Encoding:%chunked%"),
];

fn default() -> Vec<Mutation> {
    let among = BLANKS.iter().flat_map(|byte| PLACES.iter().chain(&AMONG_LINES).map(|rule| single(rule, *byte)));
    named("default", BY_HAND.map(verbatim).into_iter().chain(among))
}

fn exhaustive() -> Vec<Mutation> {
    let by_hand = BY_HAND.into_iter().chain(MORE_BY_HAND).map(verbatim);
    let single = (0x01..=0x1f).chain(0x7f..=0xff).flat_map(|byte| PLACES.iter().map(move |rule| single(rule, byte)));
    named("exhaustive", by_hand.chain(single))
}

fn doubles() -> Vec<Mutation> {
    let bytes = (0x01..=0x20).chain(0x7f..=0xff);
    named(
        "doubles",
        bytes.flat_map(|byte| PAIRS.iter().map(move |(name, line)| (filled_name(name, byte), filled(line, byte)))),
    )
}

fn verbatim((name, line): (&str, &str)) -> (String, String) {
    (name.to_owned(), line.to_owned())
}

fn single((name, line): &(&str, &str), byte: u8) -> (String, String) {
    (format!("{name}-{byte:02x}"), filled(line, byte))
}

fn filled(line: &str, byte: u8) -> String {
    line.replace('%', &char::from(byte).to_string())
}

fn filled_name(name: &str, byte: u8) -> String {
    name.replace('%', &format!("{byte:02x}"))
}

fn named(set: &str, mutations: impl Iterator<Item = (String, String)>) -> Vec<Mutation> {
    mutations.map(|(name, line)| Mutation { name: format!("{set}/{name}"), line }).collect()
}

#[test]
fn there_are_as_many_as_the_tool_has() {
    for (name, set, count) in SETS {
        let mutations = set();
        assert_eq!(mutations.len(), count, "{name}");
        let names: HashSet<&str> = mutations.iter().map(|mutation| mutation.name.as_str()).collect();
        assert_eq!(names.len(), count, "{name}: names that are twice there");
    }
    assert_eq!(all().len(), 134 + 668 + 966);
}

#[test]
fn they_are_spelled_by_the_rules() {
    let all = all();
    let line = |name: &str| {
        all.iter().find(|mutation| mutation.name == name).map(|mutation| (mutation.bytes(), mutation.utf8().to_vec()))
    };
    let same = |bytes: &[u8]| Some((bytes.to_vec(), bytes.to_vec()));
    assert_eq!(line("default/xnprespace-0d"), same(b"X: X\r\nTransfer-Encoding: chunked"));
    assert_eq!(line("exhaustive/postspace-0b"), same(b"Transfer-Encoding\x0b: chunked"));
    assert_eq!(line("doubles/XX-20-XX-20"), same(b"Transfer-Encoding : chunked "));
    let (raw, utf8) = (b"\xa0Transfer-Encoding:\xa0chunked".to_vec(), "\u{a0}Transfer-Encoding:\u{a0}chunked");
    assert_eq!(line("doubles/a0-XX-a0-XX"), Some((raw, utf8.as_bytes().to_vec())));
}
