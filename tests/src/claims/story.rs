//! The file of a story: a head, and sections of input. Output follows its input, indented by two blanks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The prefix of the name of a section.
const SECTION: &str = "== ";
/// The prefix of a line of output.
const OUTPUT: &str = "  ";

/// A story, without its recorded output.
#[derive(Clone, Debug)]
pub struct Story {
    /// API and name: `openshift/balance`.
    pub name: String,
    /// Its path.
    pub file: PathBuf,
    /// The lines before the first section.
    head: Vec<String>,
    /// `key: value` lines of the head, in order.
    settings: Vec<(String, String)>,
    /// The sections.
    pub sections: Vec<Section>,
    /// The whole file.
    pub text: String,
}

/// A part of a story.
#[derive(Clone, Debug)]
pub struct Section {
    /// `manifests`, `backends`, `requests`, `status`, `validate` or `bpf`.
    pub kind: String,
    /// What follows the kind on its line.
    pub argument: String,
    /// The input lines.
    pub lines: Vec<String>,
}

/// Recorded output: for each section, the lines after each input line; `None` for those before the first.
pub type Outputs = BTreeMap<(usize, Option<usize>), Vec<String>>;

/// The keys that a head may have.
const KEYS: &[&str] = &["claims", "data-path", "flags", "answer", "seen", "mask", "router"];
/// Kinds of sections, and whether they have output.
const KINDS: &[(&str, bool)] = &[
    ("manifests", false),
    ("backends", false),
    ("requests", true),
    ("status", true),
    ("validate", true),
    ("bpf", true),
];

impl Story {
    /// Parses a file of `folder`.
    ///
    /// # Errors
    /// It cannot be read, or a line is invalid.
    pub fn read(folder: &Path, file: &Path) -> Result<Story> {
        let text = fs::read_to_string(file)?;
        let name = file.strip_prefix(folder)?.with_extension("").display().to_string();
        let mut story = Story {
            name,
            file: file.to_owned(),
            head: Vec::new(),
            settings: Vec::new(),
            sections: Vec::new(),
            text: String::new(),
        };
        for (number, line) in text.lines().enumerate() {
            story.add(line).with_context(|| format!("{}:{}", file.display(), number + 1))?;
        }
        ensure!(!story.title().is_empty(), "{} has no title in its first line", file.display());
        story.text = text;
        Ok(story)
    }

    fn add(&mut self, line: &str) -> Result<()> {
        if let Some(section) = line.strip_prefix(SECTION) {
            let (kind, argument) = section.split_once(' ').unwrap_or((section, ""));
            ensure!(KINDS.iter().any(|(known, _)| *known == kind), "{kind:?} is no section; write one of {KINDS:?}");
            let (kind, argument) = (kind.to_owned(), argument.trim().to_owned());
            self.sections.push(Section { kind, argument, lines: Vec::new() });
            return Ok(());
        }
        let Some(section) = self.sections.last_mut() else {
            if let Some((key, value)) = line.split_once(": ").filter(|(key, _)| KEYS.contains(key)) {
                self.settings.push((key.to_owned(), value.trim().to_owned()));
            }
            self.head.push(line.to_owned());
            return Ok(());
        };
        let has_output = KINDS.iter().any(|(kind, has_output)| *kind == section.kind && *has_output);
        if !(has_output && line.starts_with(OUTPUT)) {
            section.lines.push(line.to_owned());
        }
        Ok(())
    }

    /// Its first line.
    pub fn title(&self) -> &str {
        self.head.first().map_or("", |line| line.trim())
    }

    /// The API: the name of its folder.
    pub fn api(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// The values of a key of the head, in order.
    pub fn settings<'s>(&'s self, key: &'s str) -> impl Iterator<Item = &'s str> {
        self.settings.iter().filter(move |(found, _)| found == key).map(|(_, value)| value.as_str())
    }

    /// The values of a key with comma-separated lists.
    pub fn list(&self, key: &str) -> Vec<String> {
        let items = self.settings(key).flat_map(|value| value.split(','));
        items.map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
    }

    /// The sections of a kind.
    pub fn of_kind<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = &'s Section> {
        self.sections.iter().filter(move |section| section.kind == kind)
    }

    /// The file with these outputs.
    pub fn render(&self, outputs: &Outputs) -> String {
        let mut lines = self.head.clone();
        let output = |lines: &mut Vec<String>, at| {
            lines.extend(outputs.get(&at).into_iter().flatten().map(|line| format!("{OUTPUT}{line}")));
        };
        for (index, section) in self.sections.iter().enumerate() {
            lines.push(format!("{SECTION}{} {}", section.kind, section.argument).trim_end().to_owned());
            output(&mut lines, (index, None));
            for (at, line) in section.lines.iter().enumerate() {
                lines.push(line.clone());
                output(&mut lines, (index, Some(at)));
            }
        }
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// All stories of a folder, in order of name.
///
/// # Errors
/// When one cannot be read.
pub fn all(folder: &Path) -> Result<Vec<Story>> {
    let mut stories = Vec::new();
    for api in fs::read_dir(folder)? {
        let api = api?.path();
        if !api.is_dir() {
            continue;
        }
        for file in fs::read_dir(&api)? {
            let file = file?.path();
            if file.extension().is_some_and(|ending| ending == "story") {
                stories.push(Story::read(folder, &file)?);
            }
        }
    }
    stories.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(stories)
}

/// The first line in which two texts differ, with its context.
pub fn difference(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let at = expected.iter().zip(&found).take_while(|(expected, found)| expected == found).count();
    let mut text = String::new();
    for line in &expected[at.saturating_sub(3)..at] {
        text += &format!("    {line}\n");
    }
    for (sign, lines) in [('-', &expected), ('+', &found)] {
        for line in lines.iter().skip(at).take(8) {
            text += &format!("  {sign} {line}\n");
        }
    }
    format!("line {}:\n{text}", at + 1)
}
