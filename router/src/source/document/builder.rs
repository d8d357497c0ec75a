//! Builds values from parser events, within budgets.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::map::Entry;
use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{Event, Marker, Span};

use super::scalar::{self, Scalar};
use crate::source::document::tree::{Document, DocumentError, Mark, NodePlace, children};

/// Maximum nesting, with aliases expanded. Objects of Kubernetes stay below 20; callers recurse over trees.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of nodes of one document, with aliases expanded: stops "a billion laughs".
const MAX_NODES: usize = 1_000_000;
/// Maximum number of bytes of scalars that aliases may add to one document.
const MAX_ALIAS_BYTES: usize = 4 << 20;
/// Initial capacity of a mapping, in members.
const USUAL_MEMBERS: usize = 4;
/// Initial capacity of a document, in places.
const USUAL_PLACES: usize = 32;
/// The key of merged mappings.
const MERGE: &str = "<<";

/// Consumes the events of one chunk of text.
pub struct Builder<'t> {
    lines_before: u32,
    documents: Vec<Document<'t>>,
    faults: Vec<DocumentError>,
    stack: Vec<OpenNode<'t>>,
    anchors: HashMap<usize, Anchored<'t>>,
    root: Option<Value>,
    places: Vec<NodePlace<'t>>,
    nodes: usize,
    alias_bytes: usize,
}

/// An open list or mapping.
struct OpenNode<'t> {
    at: Mark,
    anchor: usize,
    height: usize,
    /// Index of its own place; those of its content follow.
    start: usize,
    content: NodeContent<'t>,
}

enum NodeContent<'t> {
    List(Vec<Value>),
    Mapping(MappingMembers<'t>),
}

#[derive(Default)]
struct MappingMembers<'t> {
    map: Map<String, Value>,
    /// The key of the next value; taken when the value begins.
    key: Option<(Cow<'t, str>, Mark)>,
    /// True if the next event is a value and not a key.
    wants_value: bool,
    /// Duplicate keys.
    again: Vec<(String, Mark)>,
    /// Mappings, or lists of them, to merge.
    merged: Vec<(Value, Vec<NodePlace<'t>>)>,
}

struct Anchored<'t> {
    value: Value,
    places: Vec<NodePlace<'t>>,
    height: usize,
    bytes: usize,
}

impl<'t> Builder<'t> {
    /// A builder for a chunk that begins after this many lines of its file.
    pub fn new(lines_before: u32) -> Self {
        Builder {
            lines_before,
            documents: Vec::new(),
            faults: Vec::new(),
            stack: Vec::new(),
            anchors: HashMap::new(),
            root: None,
            places: Vec::with_capacity(USUAL_PLACES),
            nodes: 0,
            alias_bytes: 0,
        }
    }

    /// Converts a place in the chunk to the place in the file.
    pub fn mark(&self, marker: &Marker) -> Mark {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Mark {
            line: number(marker.line()).saturating_add(self.lines_before).max(1),
            column: number(marker.col()).saturating_add(1),
        }
    }

    /// Consumes the next event.
    ///
    /// # Errors
    /// The document exceeds a limit; the entire chunk is unusable.
    pub fn take(&mut self, event: Event<'t>, span: &Span) -> Result<(), DocumentError> {
        let at = self.mark(&span.start);
        match event {
            Event::DocumentStart(..) => {
                self.root = None;
                self.places.clear();
                self.anchors.clear();
                (self.nodes, self.alias_bytes) = (0, 0);
            }
            Event::DocumentEnd => {
                if let Some(value) = self.root.take() {
                    let (places, faults) = (std::mem::take(&mut self.places), std::mem::take(&mut self.faults));
                    self.documents.push(Document { value, places, faults });
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.count(at, 1)?;
                let scalar = scalar::resolve(text, style, tag.as_deref()).unwrap_or_else(|message| {
                    self.faults.push(DocumentError { at, message });
                    Scalar::Other(Value::Null)
                });
                self.scalar(scalar, anchor, at)?;
            }
            Event::SequenceStart(_, anchor, _) => self.open(at, anchor, NodeContent::List(Vec::new()))?,
            Event::MappingStart(_, anchor, _) => {
                let map = Map::with_capacity(USUAL_MEMBERS);
                self.open(at, anchor, NodeContent::Mapping(MappingMembers { map, ..MappingMembers::default() }))?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close()?,
            Event::Alias(id) => self.alias(id, at)?,
            _ => {}
        }
        Ok(())
    }

    /// The documents.
    pub fn finish(self) -> Vec<Document<'t>> {
        self.documents
    }

    fn count(&mut self, at: Mark, nodes: usize) -> Result<(), DocumentError> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return Err(DocumentError {
                at,
                message: format!("the document has more than {MAX_NODES} values; split it"),
            });
        }
        Ok(())
    }

    fn open(&mut self, at: Mark, anchor: usize, content: NodeContent<'t>) -> Result<(), DocumentError> {
        self.count(at, 1)?;
        self.check_depth(at, 1)?;
        let start = self.begin(at, false);
        self.stack.push(OpenNode { at, anchor, height: 0, start, content });
        Ok(())
    }

    fn check_depth(&self, at: Mark, more: usize) -> Result<(), DocumentError> {
        if self.stack.len() + more > MAX_DEPTH {
            return Err(DocumentError { at, message: format!("the document nests deeper than {MAX_DEPTH} levels") });
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), DocumentError> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let value = match frame.content {
            NodeContent::List(items) => Value::Array(items),
            NodeContent::Mapping(members) => Value::Object(self.members(members, frame.start)),
        };
        self.end(value, frame.start, frame.anchor, frame.height + 1, frame.at)
    }

    /// The members of a completed mapping. Reports duplicate keys; the first of each counts.
    fn members(&mut self, members: MappingMembers<'t>, start: usize) -> Map<String, Value> {
        let MappingMembers { mut map, again, merged, .. } = members;
        for (key, at) in again {
            let own = self.places.get(start..).unwrap_or_default();
            // The mapping's own place does not have its length yet.
            let first = children(own).filter_map(<[_]>::first).find(|place| place.key == key);
            let line = first.map_or(at.line, |place| place.key_at.line);
            let message = format!("key {key:?} is given twice, first in line {line}; remove one");
            self.faults.push(DocumentError { at, message });
        }
        for (value, places) in merged {
            match value {
                Value::Array(items) => {
                    for (item, places) in items.into_iter().zip(children(&places)) {
                        self.inherit(&mut map, item, places);
                    }
                }
                value => self.inherit(&mut map, value, &places),
            }
        }
        map
    }

    /// Adds the members of a merged mapping that the mapping under construction does not define itself.
    fn inherit(&mut self, map: &mut Map<String, Value>, value: Value, places: &[NodePlace<'t>]) {
        let Value::Object(inherited) = value else { return };
        for ((key, value), places) in inherited.into_iter().zip(children(places)) {
            if let Entry::Vacant(vacant) = map.entry(key) {
                vacant.insert(value);
                self.places.extend_from_slice(places);
            }
        }
    }

    fn scalar(&mut self, scalar: Scalar<'t>, anchor: usize, at: Mark) -> Result<(), DocumentError> {
        match self.stack.last_mut() {
            Some(OpenNode { content: NodeContent::Mapping(members), .. }) if !members.wants_value && anchor == 0 => {
                members.wants_value = true;
                members.key = Some((scalar.into_key(), at));
                Ok(())
            }
            _ => {
                let start = self.begin(at, true);
                self.end(scalar.into_value(), start, anchor, 0, at)
            }
        }
    }

    fn alias(&mut self, id: usize, at: Mark) -> Result<(), DocumentError> {
        let Some(anchored) = self.anchors.get(&id) else {
            return Err(DocumentError { at, message: "the alias stands inside the value it names".to_owned() });
        };
        let (value, places, height) = (anchored.value.clone(), anchored.places.clone(), anchored.height);
        self.alias_bytes = self.alias_bytes.saturating_add(anchored.bytes);
        if self.alias_bytes > MAX_ALIAS_BYTES {
            let message = format!("aliases add more than {MAX_ALIAS_BYTES} bytes; write the values out");
            return Err(DocumentError { at, message });
        }
        self.count(at, places.len())?;
        self.check_depth(at, height)?;
        let start = self.begin(at, height == 0);
        self.places.extend(places.into_iter().skip(1));
        self.end(value, start, 0, height, at)
    }

    /// Records where a value begins.
    fn begin(&mut self, at: Mark, is_scalar: bool) -> usize {
        let start = self.places.len();
        let key = match self.stack.last_mut() {
            Some(OpenNode { content: NodeContent::Mapping(members), .. }) => members.key.take(),
            _ => None,
        };
        self.places.push(match key {
            Some((key, key_at)) => NodePlace { key, key_at, at: if is_scalar { at } else { key_at }, len: 1 },
            None => NodePlace { key: Cow::Borrowed(""), key_at: at, at, len: 1 },
        });
        start
    }

    /// Adds a completed value to its list, mapping or document. Its places begin at `start`.
    fn end(&mut self, value: Value, start: usize, anchor: usize, height: usize, at: Mark) -> Result<(), DocumentError> {
        let len = self.places.len() - start;
        let Some(place) = self.places.get_mut(start) else { return Ok(()) };
        place.len = len;
        if anchor != 0 {
            let places = self.places.get(start..).unwrap_or_default().to_vec();
            let bytes = scalar_bytes(&value);
            self.anchors.insert(anchor, Anchored { value: value.clone(), places, height, bytes });
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        frame.height = frame.height.max(height);
        match &mut frame.content {
            NodeContent::List(items) => items.push(value),
            NodeContent::Mapping(members) if members.wants_value => {
                members.wants_value = false;
                let Some(place) = self.places.get(start) else { return Ok(()) };
                if place.key == MERGE {
                    members.merged.push((value, self.places.split_off(start)));
                    return Ok(());
                }
                match members.map.entry(&*place.key) {
                    Entry::Vacant(vacant) => {
                        vacant.insert(value);
                    }
                    Entry::Occupied(known) => {
                        members.again.push((known.key().clone(), place.key_at));
                        self.places.truncate(start);
                    }
                }
            }
            NodeContent::Mapping(members) => {
                self.places.truncate(start);
                members.wants_value = true;
                members.key = Some((key_text(value, at)?, at));
            }
        }
        Ok(())
    }
}

fn key_text(value: Value, at: Mark) -> Result<Cow<'static, str>, DocumentError> {
    match value {
        Value::Array(_) | Value::Object(_) => Err(DocumentError { at, message: "a key must be a text".to_owned() }),
        Value::String(text) => Ok(Scalar::Text(text.into()).into_key()),
        other => Ok(Scalar::Other(other).into_key()),
    }
}

/// Bytes of the scalars and keys in a value.
fn scalar_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(scalar_bytes).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + scalar_bytes(value)).sum(),
        _ => 8,
    }
}
