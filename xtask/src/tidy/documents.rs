//! References to documents and to their sections, in comments and in documents, against the documents that there are.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::Sources;

/// A reference in a text.
struct DocumentReference<'a> {
    line: usize,
    document: &'a str,
    anchor: Option<&'a str>,
    /// A Markdown link, relative to its file.
    is_link: bool,
}

/// References to documents and sections that do not exist. In comments and in the text of documents a path is relative to
/// the file, to the root or to `docs/`.
pub fn dangling(sources: &Sources) -> Vec<String> {
    let documents: BTreeMap<&str, BTreeSet<String>> =
        sources.documents.iter().map(|(path, text)| (path.as_str(), anchors(text))).collect();
    let code = sources.code.iter().map(|(path, code)| (path, &code.comments));
    let mut problems = Vec::new();
    for (path, text) in code.chain(&sources.documents).chain(&sources.manifests) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for DocumentReference { line, document, anchor, is_link } in references(text) {
            let beside = if document.is_empty() { path.clone() } else { joined(folder, document) };
            let places = [beside, joined("", document), joined("docs", document)];
            let places = if is_link { &places[..1] } else { &places };
            match (places.iter().find_map(|place| documents.get(place.as_str())), anchor) {
                (None, _) => problems.push(format!("{path}:{line}: there is no document `{document}`")),
                (Some(anchors), Some(anchor)) if !anchors.contains(anchor) => {
                    problems.push(format!("{path}:{line}: `{document}` has no section or anchor `#{anchor}`"));
                }
                _ => {}
            }
        }
    }
    problems
}

/// References in the order of the text. URLs name documents of others, and are left out.
fn references(text: &str) -> Vec<DocumentReference<'_>> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        for (at, _) in text.match_indices(".md") {
            let (before, after) = (&text[..at], &text[at + 3..]);
            let of_path = |character: char| character.is_ascii_alphanumeric() || "._-/".contains(character);
            let begin = before.trim_end_matches(of_path).len();
            let word = before.rfind(|character: char| character.is_whitespace() || "(<[".contains(character));
            let is_url = text[word.map_or(0, |word| word + 1)..at].contains("://");
            // A name may go on: `one.md.test`, `x.mdx`.
            let end = after.trim_start_matches('.');
            let goes_on = end.starts_with(|c: char| c.is_ascii_alphanumeric() || "_-/".contains(c));
            if begin == at || is_url || goes_on {
                continue;
            }
            let (document, is_link) = (&text[begin..at + 3], before[..begin].ends_with("]("));
            found.push(DocumentReference { line, document, anchor: after.strip_prefix('#').map(anchor), is_link });
        }
        for (at, link) in text.match_indices("](#") {
            let anchor = Some(anchor(&text[at + link.len()..]));
            found.push(DocumentReference { line, document: "", anchor, is_link: true });
        }
    }
    found
}

/// The anchor that a text begins with.
fn anchor(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_alphanumeric() && !"_-.".contains(character));
    text[..end.unwrap_or(text.len())].trim_end_matches('.')
}

/// A path from a folder, without `.` and `..`.
pub fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What links into a document may name: its headings, as GitHub makes anchors of them, and its own `id="…"`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if !is_code && heading.len() < line.len() && heading.starts_with(' ') {
            let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            let slug: String = kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
            let repeated = (1..).map(|number| format!("{slug}-{number}"));
            let free = std::iter::once(slug.clone()).chain(repeated).find(|anchor| !anchors.contains(anchor));
            anchors.extend(free);
        }
        let ids = line.split("id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
        anchors.extend(ids.map(|(id, _)| id.to_owned()));
    }
    anchors
}
