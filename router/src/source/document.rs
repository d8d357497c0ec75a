//! YAML and JSON text to trees that know the line and column of every value.
//!
//! Each document of a file is read on its own, so that a broken one leaves the others alone. Trees are bounded in
//! depth and size, aliases expanded, whatever the text says.

mod builder;
mod scalar;

use serde_json::Value;
use serde_saphyr::granit_parser::{Options, Parser};

use builder::Builder;
use router_model::field::{FieldPath, Step};

/// A place in a text: line and column, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// A value and where it begins.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where.
    pub at: Mark,
    /// What.
    pub content: Content,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Content {
    /// A scalar: null, truth value, number or text.
    Scalar(Value),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in order of the text, each key once.
    Mapping(Vec<Member>),
}

/// A member of a mapping.
#[derive(Clone, Debug)]
pub struct Member {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_at: Mark,
    /// The value.
    pub value: Node,
}

/// What is wrong at a place of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub at: Mark,
    /// What.
    pub message: String,
}

/// One document of a text.
#[derive(Debug)]
pub struct Document {
    /// Its root; a null scalar when the document is empty.
    pub root: Node,
    /// What makes it unusable although it could be read, such as a key that is given twice.
    pub faults: Vec<Fault>,
}

/// What a text holds.
#[derive(Debug, Default)]
pub struct Documents {
    /// The documents that could be read, in order.
    pub good: Vec<Document>,
    /// Syntax errors, at most one for each broken document.
    pub broken: Vec<Fault>,
}

/// Reads all documents of a text. JSON is read as the YAML it nearly is, and as JSON where that does not do.
pub fn read(text: &str, is_json: bool) -> Documents {
    let mut documents = Documents::default();
    for (part, lines_before) in parts(text, is_json) {
        let read = read_part(part, lines_before, is_json);
        documents.good.extend(read.good);
        documents.broken.extend(read.broken);
    }
    documents
}

/// Cuts a text into parts that can be read one by one, each with the number of lines before it.
pub fn parts(text: &str, is_json: bool) -> Vec<(&str, u32)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if is_json { vec![(text, 0)] } else { chunks(text) }
}

/// Reads one of the [`parts`].
pub fn read_part(text: &str, lines_before: u32, is_json: bool) -> Documents {
    match read_chunk(text, lines_before) {
        Ok(good) => Documents { good, broken: Vec::new() },
        Err(_) if is_json => read_json(text),
        Err(fault) => Documents { good: Vec::new(), broken: vec![fault] },
    }
}

impl Node {
    /// The value without places.
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Content::Mapping(members) => {
                Value::Object(members.iter().map(|member| (member.key.clone(), member.value.to_value())).collect())
            }
        }
    }

    /// The member of this key, if the node is a mapping that has it.
    pub fn member(&self, key: &str) -> Option<&Member> {
        match &self.content {
            Content::Mapping(members) => members.iter().find(|member| member.key == key),
            _ => None,
        }
    }

    /// Where the value at a path begins, or the key of the innermost mapping around it that is there.
    pub fn locate(&self, path: &FieldPath) -> Mark {
        let mut node = self;
        let mut mark = self.at;
        for step in path.steps() {
            match step {
                Step::Key(key) => match node.member(key) {
                    Some(member) => {
                        node = &member.value;
                        mark = if matches!(node.content, Content::Scalar(_)) { node.at } else { member.key_at };
                    }
                    None => return mark,
                },
                Step::Index(index) => match &node.content {
                    Content::List(items) => match items.get(*index) {
                        Some(item) => {
                            node = item;
                            mark = item.at;
                        }
                        None => return mark,
                    },
                    _ => return mark,
                },
            }
        }
        mark
    }

    fn of_value(value: Value) -> Node {
        let at = Mark { line: 1, column: 1 };
        let content = match value {
            Value::Array(items) => Content::List(items.into_iter().map(Node::of_value).collect()),
            Value::Object(map) => Content::Mapping(
                map.into_iter().map(|(key, value)| Member { key, key_at: at, value: Node::of_value(value) }).collect(),
            ),
            scalar => Content::Scalar(scalar),
        };
        Node { at, content }
    }
}

/// Splits at `---` markers. They stand at the beginning of a line, and nothing else of YAML can begin a line so, not
/// even inside block scalars (YAML 1.2.2, 9.1.2 and 6.1).
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

fn read_chunk(text: &str, lines_before: u32) -> Result<Vec<Document>, Fault> {
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
                return Err(Fault { at, message: format!("is no YAML: {}", error.info()) });
            }
        }
    }
    Ok(builder.finish())
}

fn read_json(text: &str) -> Documents {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => {
            Documents { good: vec![Document { root: Node::of_value(value), faults: Vec::new() }], broken: Vec::new() }
        }
        Err(error) => {
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).max(1);
            let at = Mark { line: count(error.line()), column: count(error.column()) };
            let what = error.to_string();
            // The place is given once, in our form.
            let what = what.split(" at line ").next().unwrap_or_default();
            Documents { good: Vec::new(), broken: vec![Fault { at, message: format!("is no JSON: {what}") }] }
        }
    }
}

#[cfg(test)]
mod tests;
