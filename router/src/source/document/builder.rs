//! Builds trees from parser events, within budgets.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use serde_saphyr::granit_parser::{Event, Marker, Span};

use super::scalar;
use crate::source::document::tree::{Content, Document, Fault, Mark, Member, Node};

/// Deepest nesting, aliases expanded. Kubernetes' objects stay below 20; callers recurse over trees.
pub const MAX_DEPTH: usize = 64;
/// Most nodes of one document, aliases expanded: what stops "a billion laughs".
const MAX_NODES: usize = 1_000_000;
/// Most bytes of scalars that aliases may add to one document.
const MAX_ALIAS_BYTES: usize = 4 << 20;

/// Takes the events of one chunk of text.
pub struct Builder {
    lines_before: u32,
    documents: Vec<Document>,
    faults: Vec<Fault>,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Anchored>,
    root: Option<Node>,
    nodes: usize,
    alias_bytes: usize,
}

struct Frame {
    at: Mark,
    anchor: usize,
    height: usize,
    kind: FrameKind,
}

enum FrameKind {
    List(Vec<Node>),
    Mapping { members: Vec<Member>, key: Option<(String, Mark)> },
}

struct Anchored {
    node: Node,
    height: usize,
    nodes: usize,
    bytes: usize,
}

impl Builder {
    /// For a chunk that begins after this many lines of its file.
    pub fn new(lines_before: u32) -> Self {
        Builder {
            lines_before,
            documents: Vec::new(),
            faults: Vec::new(),
            stack: Vec::new(),
            anchors: HashMap::new(),
            root: None,
            nodes: 0,
            alias_bytes: 0,
        }
    }

    /// The place in the file of a place in the chunk.
    pub fn mark(&self, marker: &Marker) -> Mark {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Mark {
            line: number(marker.line()).saturating_add(self.lines_before).max(1),
            column: number(marker.col()).saturating_add(1),
        }
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// The document breaks a budget; nothing of the chunk can be used.
    pub fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Fault> {
        let at = self.mark(&span.start);
        match event {
            Event::DocumentStart(..) => {
                self.root = None;
                self.anchors.clear();
                (self.nodes, self.alias_bytes) = (0, 0);
            }
            Event::DocumentEnd => {
                if let Some(root) = self.root.take() {
                    self.documents.push(Document { root, faults: std::mem::take(&mut self.faults) });
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.count(at, 1)?;
                let value = scalar::resolve(&text, style, tag.as_deref()).unwrap_or_else(|message| {
                    self.faults.push(Fault { at, message });
                    Value::Null
                });
                let node = Node { at, content: Content::Scalar(value) };
                self.anchor(anchor, &node, 0);
                self.place(node, 0, at)?;
            }
            Event::SequenceStart(_, anchor, _) => self.open(at, anchor, FrameKind::List(Vec::new()))?,
            Event::MappingStart(_, anchor, _) => {
                self.open(at, anchor, FrameKind::Mapping { members: Vec::new(), key: None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close()?,
            Event::Alias(id) => self.alias(id, at)?,
            _ => {}
        }
        Ok(())
    }

    /// The documents.
    pub fn finish(self) -> Vec<Document> {
        self.documents
    }

    fn count(&mut self, at: Mark, nodes: usize) -> Result<(), Fault> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return Err(Fault { at, message: format!("the document has more than {MAX_NODES} values; split it") });
        }
        Ok(())
    }

    fn open(&mut self, at: Mark, anchor: usize, kind: FrameKind) -> Result<(), Fault> {
        self.count(at, 1)?;
        self.check_depth(at, 1)?;
        self.stack.push(Frame { at, anchor, height: 0, kind });
        Ok(())
    }

    fn check_depth(&self, at: Mark, more: usize) -> Result<(), Fault> {
        if self.stack.len() + more > MAX_DEPTH {
            return Err(Fault { at, message: format!("the document nests deeper than {MAX_DEPTH} levels") });
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fault> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let content = match frame.kind {
            FrameKind::List(items) => Content::List(items),
            FrameKind::Mapping { members, .. } => Content::Mapping(self.unique(merged(members))),
        };
        let node = Node { at: frame.at, content };
        let height = frame.height + 1;
        self.anchor(frame.anchor, &node, height);
        self.place(node, height, frame.at)
    }

    fn alias(&mut self, id: usize, at: Mark) -> Result<(), Fault> {
        let Some(anchored) = self.anchors.get(&id) else {
            return Err(Fault { at, message: "the alias stands inside the value it names".to_owned() });
        };
        let (mut node, height, nodes) = (anchored.node.clone(), anchored.height, anchored.nodes);
        self.alias_bytes = self.alias_bytes.saturating_add(anchored.bytes);
        if self.alias_bytes > MAX_ALIAS_BYTES {
            let message = format!("aliases add more than {MAX_ALIAS_BYTES} bytes; write the values out");
            return Err(Fault { at, message });
        }
        self.count(at, nodes)?;
        self.check_depth(at, height)?;
        node.at = at;
        self.place(node, height, at)
    }

    fn anchor(&mut self, id: usize, node: &Node, height: usize) {
        if id != 0 {
            let (nodes, bytes) = measure(node);
            self.anchors.insert(id, Anchored { node: node.clone(), height, nodes, bytes });
        }
    }

    fn place(&mut self, node: Node, height: usize, at: Mark) -> Result<(), Fault> {
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        frame.height = frame.height.max(height);
        match &mut frame.kind {
            FrameKind::List(items) => items.push(node),
            FrameKind::Mapping { members, key } => match key.take() {
                Some((key, key_at)) => members.push(Member { key, key_at, value: node }),
                None => *key = Some((key_text(node)?, at)),
            },
        }
        Ok(())
    }

    /// Notes keys that are given twice, and keeps the first of each.
    fn unique(&mut self, members: Vec<Member>) -> Vec<Member> {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        let mut kept = Vec::with_capacity(members.len());
        for member in members {
            match seen.get(&member.key) {
                Some(line) => self.faults.push(Fault {
                    at: member.key_at,
                    message: format!("key {:?} is given twice, first in line {line}; remove one", member.key),
                }),
                None => {
                    seen.insert(member.key.clone(), member.key_at.line);
                    kept.push(member);
                }
            }
        }
        kept
    }
}

fn key_text(node: Node) -> Result<String, Fault> {
    match node.content {
        Content::Scalar(Value::String(text)) => Ok(text),
        Content::Scalar(Value::Null) => Ok(String::new()),
        Content::Scalar(other) => Ok(other.to_string()),
        _ => Err(Fault { at: node.at, message: "a key must be a text".to_owned() }),
    }
}

/// Puts the members of `<<: *other` mappings in, where the mapping has not its own.
fn merged(members: Vec<Member>) -> Vec<Member> {
    if !members.iter().any(|member| member.key == "<<") {
        return members;
    }
    let (sources, mut members): (Vec<_>, Vec<_>) = members.into_iter().partition(|member| member.key == "<<");
    for source in sources {
        let mappings = match source.value.content {
            Content::List(items) => items,
            _ => vec![source.value],
        };
        for mapping in mappings {
            let Content::Mapping(inherited) = mapping.content else { continue };
            for member in inherited {
                if !members.iter().any(|known| known.key == member.key) {
                    members.push(member);
                }
            }
        }
    }
    members
}

/// Nodes and bytes of scalars in a tree.
fn measure(node: &Node) -> (usize, usize) {
    match &node.content {
        Content::Scalar(Value::String(text)) => (1, text.len()),
        Content::Scalar(_) => (1, 8),
        Content::List(items) => items.iter().map(measure).fold((1, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
        Content::Mapping(members) => members.iter().fold((1, 0), |sum, member| {
            let (nodes, bytes) = measure(&member.value);
            (sum.0 + nodes, sum.1 + bytes + member.key.len())
        }),
    }
}
