//! The files of the tree: code as tokens, and the text of comments and documents.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::ops::Range;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};

/// Code, documents and manifests, by their paths relative to the root.
pub struct Sources {
    /// `*.rs`.
    pub code: BTreeMap<String, Code>,
    /// `*.md`, their text.
    pub documents: BTreeMap<String, String>,
    /// `*.toml`: the text of their comments, each in its line.
    pub manifests: BTreeMap<String, String>,
}

/// The parts of a source file that the rules need.
pub struct Code {
    first_line: String,
    /// Line of the first `unsafe`.
    pub unsafe_line: Option<usize>,
    /// The file with all but its comments replaced by blanks.
    pub comments: String,
}

impl Sources {
    /// Reads all of them, except in hidden folders and in those that cargo builds in.
    pub fn read(root: &Path) -> Result<Sources> {
        let mut paths = Vec::new();
        list(root, "", &mut paths)?;
        let text = |path: &String| fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"));
        let of_kind = |kind: &str| paths.iter().filter(|path| path.ends_with(kind)).cloned().collect::<Vec<_>>();
        let read = |path: String| Ok((text(&path)?, path));
        let documents = of_kind(".md").into_iter().map(read).map(|file| file.map(|(text, path)| (path, text)));
        let manifests = of_kind(".toml").into_iter().map(read);
        let manifests = manifests.map(|file| file.map(|(text, path)| (path, comments_of_toml(&text))));

        let code = of_kind(".rs");
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let code: Result<Vec<Vec<_>>> = thread::scope(|scope| {
            let chunks = code.chunks(code.len().div_ceil(threads).max(1));
            let read = |path: &String| Ok((path.clone(), Code::read(&text(path)?).with_context(|| path.clone())?));
            let started: Vec<_> =
                chunks.map(|chunk| scope.spawn(move || chunk.iter().map(read).collect::<Result<Vec<_>>>())).collect();
            started.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a reader panicked"))?).collect()
        });

        Ok(Sources {
            code: code?.into_iter().flatten().collect(),
            documents: documents.collect::<Result<_>>()?,
            manifests: manifests.collect::<Result<_>>()?,
        })
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.code.len() + self.documents.len() + self.manifests.len()
    }

    /// Files without a `//!` line at their beginning. Exceptions: generated files (`@generated` in the first line) and
    /// test inputs (in a folder `fixtures`).
    pub fn without_documentation(&self) -> Vec<String> {
        let is_fixture = |path: &str| path.split('/').any(|folder| folder == "fixtures");
        let wanting = self.code.iter().filter(|(path, code)| {
            !code.first_line.starts_with("//! ") && !code.first_line.contains("@generated") && !is_fixture(path)
        });
        wanting.map(|(path, _)| format!("{path}:1: the first line must say what the file is: `//! …`")).collect()
    }
}

/// Adds the files below a folder.
fn list(root: &Path, folder: &str, into: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(root.join(folder)).with_context(|| format!("reading folder `{folder}`"))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        match entry.file_type()?.is_dir() {
            true => list(root, &path, into)?,
            false => into.push(path),
        }
    }
    Ok(())
}

impl Code {
    fn read(text: &str) -> Result<Code> {
        let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{error}"))?;
        let mut code = Code {
            first_line: text.lines().next().unwrap_or_default().to_owned(),
            unsafe_line: None,
            comments: String::new(),
        };
        let mut blanked = text.as_bytes().to_vec();
        code.add(tokens, text, &mut blanked);
        code.comments = String::from_utf8(blanked)?;
        Ok(code)
    }

    /// Blanks everything but comments: all tokens except those of doc comments.
    fn add(&mut self, tokens: TokenStream, text: &str, blanked: &mut [u8]) {
        let mut blank = |range: Range<usize>| {
            if !text[range.clone()].starts_with("//") && !text[range.clone()].starts_with("/*") {
                blanked[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
            }
        };
        let mut inner = Vec::new();
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    blank(group.span_open().byte_range());
                    blank(group.span_close().byte_range());
                    inner.push(group.stream());
                }
                token => {
                    if matches!(&token, TokenTree::Ident(ident) if ident == "unsafe") {
                        self.unsafe_line = self.unsafe_line.or(Some(token.span().start().line));
                    }
                    blank(token.span().byte_range());
                }
            }
        }
        for tokens in inner {
            self.add(tokens, text, blanked);
        }
    }
}

/// The comments of a manifest. No string of ours runs over several lines.
fn comments_of_toml(text: &str) -> String {
    let comment = |line: &str| {
        let mut quoted = false;
        let begin = line.find(|character| {
            quoted ^= character == '"';
            character == '#' && !quoted
        });
        begin.map_or(String::new(), |begin| line[begin..].to_owned())
    };
    text.lines().map(comment).collect::<Vec<_>>().join("\n")
}
