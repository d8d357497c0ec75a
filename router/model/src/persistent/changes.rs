//! Difference of two versions: a parallel walk of both trees that skips shared nodes.

use std::cmp::Ordering;

use super::entry::Entry;
use super::identity::Identity;
use super::node::{Child, Node};

/// A key at which two versions differ.
#[derive(Debug)]
pub struct Difference<'m, K, V> {
    /// The key.
    pub key: &'m K,
    /// Its value in the older version.
    pub old: Option<&'m V>,
    /// Its value in the newer version.
    pub new: Option<&'m V>,
}

type DifferenceOf<'m, E> = Difference<'m, <E as Entry>::Key, <E as Entry>::Value>;

/// The differences, in order of key.
pub fn between<'m, E: Entry<Value: Identity>>(
    old: &'m Node<E>,
    new: &'m Node<E>,
) -> impl Iterator<Item = DifferenceOf<'m, E>> {
    let mut walk = if old.is(new) { None } else { Some((Cursor::new(old), Cursor::new(new))) };
    std::iter::from_fn(move || {
        let (old, new) = walk.as_mut()?;
        next(old, new)
    })
}

fn next<'m, E: Entry<Value: Identity>>(
    old: &mut Cursor<'m, E>,
    new: &mut Cursor<'m, E>,
) -> Option<DifferenceOf<'m, E>> {
    loop {
        match (old.peek(), new.peek()) {
            (None, None) => return None,
            (Some(Item::Node(..)), None) => old.open(),
            (None, Some(Item::Node(..))) => new.open(),
            (Some(Item::Entry(..)), None) => return old.removed(),
            (None, Some(Item::Entry(..))) => return new.added(),
            (Some(Item::Node(a, one)), Some(Item::Node(b, other))) => {
                if one.is(other) {
                    old.skip();
                    new.skip();
                    continue;
                }
                // Descend into the node with the smaller key, or else the higher one, so that shared nodes align.
                let order = a.cmp(b).then_with(|| other.height().cmp(&one.height()));
                if order != Ordering::Greater {
                    old.open();
                }
                if order != Ordering::Less {
                    new.open();
                }
            }
            (Some(Item::Node(a, _)), Some(Item::Entry(b, _))) if a <= b => old.open(),
            (Some(Item::Entry(a, _)), Some(Item::Node(b, _))) if b <= a => new.open(),
            (Some(Item::Node(..)), Some(Item::Entry(..))) => return new.added(),
            (Some(Item::Entry(..)), Some(Item::Node(..))) => return old.removed(),
            (Some(Item::Entry(a, was)), Some(Item::Entry(b, is))) => match a.cmp(b) {
                Ordering::Less => return old.removed(),
                Ordering::Greater => return new.added(),
                Ordering::Equal => {
                    old.skip();
                    new.skip();
                    if !was.same(is) {
                        return Some(Difference { key: b, old: Some(was), new: Some(is) });
                    }
                }
            },
        }
    }
}

/// A position in a tree.
struct Cursor<'m, E: Entry> {
    /// Remaining items per level, outermost first.
    after: Vec<&'m [Child<E>]>,
    entries: &'m [E],
}

/// The node or entry at a position.
enum Item<'m, E: Entry> {
    /// A node, with its smallest key.
    Node(&'m E::Key, &'m Node<E>),
    Entry(&'m E::Key, &'m E::Value),
}

impl<'m, E: Entry> Cursor<'m, E> {
    fn new(root: &'m Node<E>) -> Self {
        let mut cursor = Cursor { after: Vec::new(), entries: &[] };
        cursor.enter(root);
        cursor
    }

    fn enter(&mut self, node: &'m Node<E>) {
        match node {
            Node::Leaf(entries) => self.entries = entries,
            Node::Inner(children) => self.after.push(children),
        }
    }

    fn peek(&mut self) -> Option<Item<'m, E>> {
        if let Some(entry) = self.entries.first() {
            return Some(Item::Entry(entry.key(), entry.value()));
        }
        loop {
            match self.after.last()? {
                [] => drop(self.after.pop()),
                [(key, node), ..] => return Some(Item::Node(key, node)),
            }
        }
    }

    /// Skips the current entry or node.
    fn skip(&mut self) {
        if let [_, rest @ ..] = self.entries {
            self.entries = rest;
        } else if let Some(nodes) = self.after.last_mut()
            && let [_, rest @ ..] = *nodes
        {
            *nodes = rest;
        }
    }

    /// Descends to the first item of the current node.
    fn open(&mut self) {
        if let Some(Item::Node(_, node)) = self.peek() {
            self.skip();
            self.enter(node);
        }
    }

    fn removed(&mut self) -> Option<DifferenceOf<'m, E>> {
        let [entry, ..] = self.entries else { return None };
        self.skip();
        Some(Difference { key: entry.key(), old: Some(entry.value()), new: None })
    }

    fn added(&mut self) -> Option<DifferenceOf<'m, E>> {
        let [entry, ..] = self.entries else { return None };
        self.skip();
        Some(Difference { key: entry.key(), old: None, new: Some(entry.value()) })
    }
}
