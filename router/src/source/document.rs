//! YAML and JSON text to values, with the line and column of each.
//!
//! Each document of a file is parsed on its own, so that a syntax error does not affect the others. Depth and size of
//! values are limited, with aliases expanded.

mod builder;
mod scalar;
pub mod tree;

use serde_json::Value;
use serde_saphyr::granit_parser::{Options, Parser};

use builder::Builder;
use tree::{Document, DocumentError, Mark};

/// Documents and syntax errors of a text.
#[derive(Debug, Default)]
pub struct Documents<'t> {
    /// The documents that could be parsed, in order.
    pub good: Vec<Document<'t>>,
    /// Syntax errors, at most one for each broken document.
    pub broken: Vec<DocumentError>,
}

/// Splits a text into parts that can be parsed one by one, each with the number of lines before it.
pub fn parts(text: &str, is_json: bool) -> Vec<(&str, u32)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if is_json { vec![(text, 0)] } else { chunks(text) }
}

/// Parses one of the [`parts`]. JSON is parsed as YAML first, and as JSON if that fails.
pub fn read_part(text: &str, lines_before: u32, is_json: bool) -> Documents<'_> {
    #[cfg(test)]
    tests::PARSED_PARTS.set(tests::PARSED_PARTS.get() + 1);
    match read_chunk(text, lines_before) {
        Ok(good) => Documents { good, broken: Vec::new() },
        Err(_) if is_json => read_json(text),
        Err(fault) => Documents { good: Vec::new(), broken: vec![fault] },
    }
}

/// Splits at `---` markers. A marker is at the beginning of a line, and no other YAML construct may begin a line this
/// way, not even a block scalar's content (YAML 1.2.2, 9.1.2 and 6.1).
fn chunks(text: &str) -> Vec<(&str, u32)> {
    let mut chunks = Vec::new();
    let (mut start, mut start_line, mut offset, mut line) = (0, 0, 0, 0);
    let mut has_content = false;
    for part in text.split_inclusive('\n') {
        let trimmed = part.trim_end();
        let is_marker = part.starts_with("---") && part[3..].chars().next().is_none_or(char::is_whitespace);
        if is_marker {
            if has_content {
                chunks.push((&text[start..offset], start_line));
            }
            (start, start_line, has_content) = (offset, line, trimmed.len() > 3);
        } else if !trimmed.is_empty() && !trimmed.starts_with(['#', '%']) {
            has_content = true;
        }
        offset += part.len();
        line += 1;
    }
    if has_content {
        chunks.push((&text[start..], start_line));
    }
    chunks
}

fn read_chunk(text: &str, lines_before: u32) -> Result<Vec<Document<'_>>, DocumentError> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.block_nesting_limit = builder::MAX_DEPTH;
    options.flow_nesting_limit = builder::MAX_DEPTH;
    let mut builder = Builder::new(lines_before);
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => builder.take(event, &span)?,
            Err(error) => {
                let at = builder.mark(error.marker());
                return Err(DocumentError { at, message: format!("is not valid YAML: {}", error.info()) });
            }
        }
    }
    Ok(builder.finish())
}

fn read_json(text: &str) -> Documents<'_> {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => Documents { good: vec![Document::of_value(value)], broken: Vec::new() },
        Err(error) => {
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).max(1);
            let at = Mark { line: count(error.line()), column: count(error.column()) };
            let what = error.to_string();
            // The position is given once, in Sluice's format.
            let what = what.split(" at line ").next().unwrap_or_default();
            Documents {
                good: Vec::new(),
                broken: vec![DocumentError { at, message: format!("is not valid JSON: {what}") }],
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
