//! The file of a story, as far as translation needs it: head, manifests, backends and requests.
//! `tests/stories/claims/README.md` specifies the format.

use std::fs;
use std::path::{Path, PathBuf};

/// A story.
pub struct Story {
    /// API and name: `openshift/balance`.
    pub name: String,
    /// Its first line.
    pub title: String,
    /// `key: value` lines of the head.
    pub head: Vec<(String, String)>,
    /// Kind, argument and lines of each section, without the expected output.
    pub sections: Vec<(String, String, Vec<String>)>,
}

impl Story {
    fn read(name: &str, text: &str) -> Self {
        let title = text.lines().next().unwrap_or_default().to_owned();
        let (mut head, mut sections) = (Vec::new(), Vec::<(String, String, Vec<String>)>::new());
        for line in text.lines() {
            if let Some(section) = line.strip_prefix("== ") {
                let (kind, argument) = section.split_once(' ').unwrap_or((section, ""));
                sections.push((kind.to_owned(), argument.trim().to_owned(), Vec::new()));
            } else if let Some((kind, _, lines)) = sections.last_mut() {
                if ["manifests", "backends"].contains(&&**kind) || !line.starts_with("  ") {
                    lines.push(line.to_owned());
                }
            } else if let Some((key, value)) = line.split_once(": ") {
                head.push((key.to_owned(), value.trim().to_owned()));
            }
        }
        Story { name: name.to_owned(), title, head, sections }
    }

    /// An example: a folder of manifests.
    fn of_folder(name: &str, folder: &Path) -> Self {
        let texts: Vec<String> = files(folder, "yaml").iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let lines = texts.join("\n---\n").lines().map(str::to_owned).collect();
        let sections = vec![("manifests".to_owned(), String::new(), lines)];
        let head =
            vec![("router".to_owned(), "none".to_owned()), ("flags".to_owned(), "--endpoint-addresses any".to_owned())];
        Story { name: name.to_owned(), title: format!("The manifests of {name}"), head, sections }
    }

    /// The sections of a kind: argument and lines.
    pub fn of_kind<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = (&'s str, &'s [String])> {
        let sections = self.sections.iter().filter(move |(found, ..)| found == kind);
        sections.map(|(_, argument, lines)| (argument.as_str(), lines.as_slice()))
    }

    /// The words of the head's `flags`.
    pub fn flags(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let flags = self.head.iter().filter(|(key, _)| key == "flags");
        flags.flat_map(|(_, value)| value.split("--").skip(1)).map(|flag| {
            let flag = flag.trim();
            flag.split_once(' ').map_or((flag, None), |(name, value)| (name, Some(value)))
        })
    }

    /// The last value of a key of the head.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.head.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = all.filter(|file| file.extension().is_some_and(|it| it == ending)).collect();
    files.sort();
    files
}

/// Every story, and every example, in order of name.
pub fn all() -> Vec<Story> {
    let mut stories = Vec::new();
    for api in ["contour", "gateway-api", "openshift"] {
        for file in files(&root().join("tests/stories/claims").join(api), "story") {
            let name = format!("{api}/{}", file.file_stem().unwrap().to_str().unwrap());
            stories.push(Story::read(&name, &fs::read_to_string(file).unwrap()));
        }
    }
    for example in ["delegation", "delegation-overlay", "quickstart"] {
        stories.push(Story::of_folder(&format!("examples/{example}"), &root().join("examples").join(example)));
    }
    stories.extend(files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claims/worlds"), "story").iter().map(
        |file| {
            let name = format!("worlds/{}", file.file_stem().unwrap().to_str().unwrap());
            Story::read(&name, &fs::read_to_string(file).unwrap())
        },
    ));
    assert!(stories.len() > 100, "only {} stories", stories.len());
    stories
}
