//! The cases, from the package that cargo has fetched.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

/// A request and guardian's classification.
#[derive(Deserialize)]
pub struct Case {
    pub name: String,
    pub method: String,
    pub uri: String,
    version: String,
    #[serde(default)]
    headers: Option<Vec<Field>>,
    expected: Expected,
}

/// A field line of the head.
#[derive(Deserialize)]
pub struct Field {
    pub name: String,
    pub value: String,
}

#[derive(Deserialize)]
struct Expected {
    tier: Tier,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Compliant,
    Acceptable,
    Ambiguous,
    Severe,
}

impl Case {
    pub fn tier(&self) -> Tier {
        self.expected.tier
    }

    /// All fields except `Host`, which the test sets.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.headers.iter().flatten().filter(|field| !field.name.eq_ignore_ascii_case("host"))
    }

    /// The head for this host, as in guardian's own tests: in UTF-8, and, if it contains characters of Latin-1, also
    /// with these as single bytes.
    pub fn heads(&self, host: &str) -> Vec<Vec<u8>> {
        let mut text = format!("{} {} {}\r\nHost: {host}\r\n", self.method, self.uri, self.version);
        for Field { name, value } in self.fields() {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        let latin: Option<Vec<u8>> = text.chars().map(|letter| u8::try_from(letter).ok()).collect();
        let utf8 = text.into_bytes();
        [Some(utf8.clone()), latin.filter(|latin| *latin != utf8)].into_iter().flatten().collect()
    }

    /// The content that the head announces to a lenient parser, and the same as sent on the wire.
    pub fn content(&self) -> (String, String) {
        let announced = |wanted: &str| {
            let letters =
                |name: &str| name.to_ascii_lowercase().replace(|letter: char| !letter.is_ascii_lowercase(), "");
            self.fields().find(|field| letters(&field.name) == wanted)
        };
        if announced("transferencoding").is_some() {
            return ("hello".to_owned(), "5\r\nhello\r\n0\r\n\r\n".to_owned());
        }
        let length = announced("contentlength").and_then(|field| field.value.trim().parse().ok());
        let content = "x".repeat(length.unwrap_or(0));
        (content.clone(), content)
    }
}

/// All cases.
pub fn all() -> Vec<Case> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(package().join("tests"))
        .expect("the package's tests")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    let cases = files.iter().flat_map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        let cases: Vec<Case> = serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        cases
    });
    let read = |case: Case| Case {
        method: unescaped(&case.method),
        uri: unescaped(&case.uri),
        version: unescaped(&case.version),
        headers: case.headers.map(|fields| {
            let read = |field: Field| Field { name: unescaped(&field.name), value: unescaped(&field.value) };
            fields.into_iter().map(read).collect()
        }),
        ..case
    };
    cases.map(read).collect()
}

/// Resolves escapes of guardian's own tests beyond YAML: a backslash before a literal character, or for white space.
fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let mut read = String::new();
    while let Some(letter) = letters.next() {
        read.push(match letter {
            '\\' => match letters.next().expect("a letter behind a backslash") {
                't' => '\t',
                letter @ ('a'..='z' | '0'..='9') => panic!("\\{letter} in {text:?} is not known here"),
                letter => letter,
            },
            letter => letter,
        });
    }
    read
}

/// Folder of the package, as fetched by cargo.
fn package() -> PathBuf {
    // cargo may not have fetched packages of other platforms.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform", &platform])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages.iter().find(|package| package["name"] == "http_desync_guardian").expect("the package");
    PathBuf::from(package["manifest_path"].as_str().expect("a path")).parent().expect("a folder").to_owned()
}
