//! Trees of values that know the line and column where they begin.

use router_model::field::{FieldPath, Step};
use serde_json::Value;

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

/// Content of a node.
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

/// A fault at a place of a text.
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
    /// Its root; a null scalar if the document is empty.
    pub root: Node,
    /// Faults that make it unusable although it could be parsed, such as a duplicate key.
    pub faults: Vec<Fault>,
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

    /// The member with this key, if the node is a mapping that has it.
    pub fn member(&self, key: &str) -> Option<&Member> {
        match &self.content {
            Content::Mapping(members) => members.iter().find(|member| member.key == key),
            _ => None,
        }
    }

    /// The place of a field; if it is missing, the key of the innermost existing mapping around it.
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

    pub(super) fn of_value(value: Value) -> Node {
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
