//! The nodes of the tree.

use std::borrow::Borrow;
use std::slice;
use std::sync::Arc;

use super::entry::Entry;

/// Maximum number of entries of a leaf and of children of an inner node. A change copies one node per level.
const MAX: usize = 32;
/// A node with fewer is merged with a neighbour that has room.
const MIN: usize = MAX / 4;

/// A child of an inner node, with its smallest key.
pub type Child<E> = (<E as Entry>::Key, Node<E>);

/// A subtree, shared between versions. Vectors have no spare capacity.
pub enum Node<E: Entry> {
    /// Entries, in order.
    Leaf(Arc<Vec<E>>),
    /// Children, all of the same height and none of them empty, each with its smallest key.
    Inner(Arc<Vec<Child<E>>>),
}

impl<E: Entry> Clone for Node<E> {
    fn clone(&self) -> Self {
        match self {
            Node::Leaf(entries) => Node::Leaf(Arc::clone(entries)),
            Node::Inner(children) => Node::Inner(Arc::clone(children)),
        }
    }
}

impl<E: Entry> Node<E> {
    /// Whether both are the same node.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Node::Leaf(one), Node::Leaf(other)) => Arc::ptr_eq(one, other),
            (Node::Inner(one), Node::Inner(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Levels below this one.
    pub fn height(&self) -> usize {
        match self {
            Node::Leaf(_) => 0,
            Node::Inner(children) => 1 + children.first().map_or(0, |(_, child)| child.height()),
        }
    }

    fn size(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Inner(children) => children.len(),
        }
    }
}

impl<E: Entry> Node<E> {
    /// A tree of sorted entries; every node except the last of each level is full.
    pub fn build(entries: Vec<E>) -> Self {
        let mut level: Vec<Child<E>> = Vec::with_capacity(entries.len().div_ceil(MAX));
        chunks(entries, |chunk: &E| chunk.key().clone(), |key, chunk| level.push((key, Node::Leaf(Arc::new(chunk)))));
        while level.len() > 1 {
            let mut above = Vec::with_capacity(level.len().div_ceil(MAX));
            chunks(level, |child| child.0.clone(), |key, chunk| above.push((key, Node::Inner(Arc::new(chunk)))));
            level = above;
        }
        level.pop().map_or_else(|| Node::Leaf(Arc::default()), |(_, root)| root)
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&E::Value>
    where
        E::Key: Borrow<Q>,
    {
        let mut node = self;
        loop {
            match node {
                Node::Inner(children) => node = &children.get(child_of(children, key))?.1,
                Node::Leaf(entries) => {
                    let i = entries.binary_search_by(|known| known.key().borrow().cmp(key)).ok()?;
                    return entries.get(i).map(E::value);
                }
            }
        }
    }

    /// Inserts or replaces; true if the key is new.
    pub fn insert_into_root(&mut self, entry: E) -> bool {
        let mut is_new = false;
        if let Some(right) = self.insert(entry, &mut is_new)
            && let Some(smallest) = self.smallest().cloned()
        {
            *self = Node::Inner(Arc::new(vec![(smallest, self.clone()), right]));
        }
        is_new
    }

    /// Inserts or replaces; returns the right half if the node was split.
    fn insert(&mut self, new: E, is_new: &mut bool) -> Option<Child<E>> {
        match self {
            Node::Leaf(entries) => {
                let entries = Arc::make_mut(entries);
                let is_last = entries.last().is_none_or(|last| last.key() < new.key());
                let place = if is_last {
                    Err(entries.len())
                } else {
                    entries.binary_search_by(|known| known.key().cmp(new.key()))
                };
                match place {
                    Ok(i) => {
                        if let Some(entry) = entries.get_mut(i) {
                            *entry = new;
                        }
                        None
                    }
                    Err(i) => {
                        *is_new = true;
                        let right = insert_at(entries, i, new)?;
                        Some((right.first()?.key().clone(), Node::Leaf(Arc::new(right))))
                    }
                }
            }
            Node::Inner(children) => {
                let i = child_of(children, new.key());
                let children = Arc::make_mut(children);
                let (smallest, child) = children.get_mut(i)?;
                if new.key() < smallest {
                    *smallest = new.key().clone();
                }
                let right = child.insert(new, is_new)?;
                let right = insert_at(children, i + 1, right)?;
                Some((right.first()?.0.clone(), Node::Inner(Arc::new(right))))
            }
        }
    }

    /// Removes a key, which must be present.
    pub fn remove_from_root<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        E::Key: Borrow<Q>,
    {
        self.remove(key);
        while let Node::Inner(children) = self {
            let [(_, only)] = children.as_slice() else { break };
            *self = only.clone();
        }
    }

    fn remove<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        E::Key: Borrow<Q>,
    {
        match self {
            Node::Leaf(entries) => {
                let entries = Arc::make_mut(entries);
                if let Ok(i) = entries.binary_search_by(|known| known.key().borrow().cmp(key)) {
                    entries.remove(i);
                    entries.shrink_to_fit();
                }
            }
            Node::Inner(children) => {
                let i = child_of(children, key);
                let children = Arc::make_mut(children);
                let Some((smallest, child)) = children.get_mut(i) else { return };
                child.remove(key);
                match child.smallest() {
                    Some(key) if key == smallest => {}
                    Some(key) => *smallest = key.clone(),
                    None => drop(children.remove(i)),
                }
                join_small(children, i);
                children.shrink_to_fit();
            }
        }
    }

    fn smallest(&self) -> Option<&E::Key> {
        match self {
            Node::Leaf(entries) => entries.first().map(E::key),
            Node::Inner(children) => children.first().map(|(key, _)| key),
        }
    }
}

/// Index of the child whose range contains the key.
fn child_of<E: Entry<Key: Borrow<Q>>, Q: Ord + ?Sized>(children: &[Child<E>], key: &Q) -> usize {
    match children.split_last() {
        // Appends, of which large changes mostly consist.
        Some(((smallest, _), before)) if smallest.borrow() <= key => before.len(),
        Some((_, before)) => before.partition_point(|(smallest, _)| smallest.borrow() <= key).saturating_sub(1),
        None => 0,
    }
}

/// Inserts into a vector of at most `MAX` items; returns the right part of a split. An insertion at the end splits off
/// one item only: appends mostly continue, and the left node stays full.
fn insert_at<T>(items: &mut Vec<T>, i: usize, item: T) -> Option<Vec<T>> {
    if items.len() < MAX {
        items.reserve_exact(1);
        items.insert(i, item);
        return None;
    }
    if i == items.len() {
        return Some(vec![item]);
    }
    let mut right = items.split_off(MAX / 2);
    match i.checked_sub(MAX / 2) {
        Some(i) => right.insert(i, item),
        None => items.insert(i, item),
    }
    items.shrink_to_fit();
    right.shrink_to_fit();
    Some(right)
}

/// Merges child `i` with a neighbour if it is small and both fit into one node.
fn join_small<E: Entry>(children: &mut Vec<Child<E>>, i: usize) {
    let size = |i: usize| children.get(i).map(|(_, child)| child.size());
    let Some(own) = size(i).filter(|size| *size < MIN) else { return };
    let fits = |neighbour: usize| size(neighbour).is_some_and(|size| size + own <= MAX);
    let left = match i.checked_sub(1) {
        Some(left) if fits(left) => left,
        _ if fits(i + 1) => i,
        _ => return,
    };
    let (_, right) = children.remove(left + 1);
    match (children.get_mut(left).map(|(_, node)| node), right) {
        (Some(Node::Leaf(left)), Node::Leaf(right)) => append(left, &right),
        (Some(Node::Inner(left)), Node::Inner(right)) => append(left, &right),
        _ => {}
    }
}

fn append<T: Clone>(left: &mut Arc<Vec<T>>, right: &[T]) {
    let left = Arc::make_mut(left);
    left.reserve_exact(right.len());
    left.extend_from_slice(right);
}

fn chunks<K, T>(items: Vec<T>, key: impl Fn(&T) -> K, mut take: impl FnMut(K, Vec<T>)) {
    let mut items = items.into_iter();
    while items.len() > 0 {
        let mut chunk = Vec::with_capacity(items.len().min(MAX));
        chunk.extend(items.by_ref().take(MAX));
        if let Some(smallest) = chunk.first().map(&key) {
            take(smallest, chunk);
        }
    }
}

/// Iterator over the entries of a map, in order of key.
pub struct Entries<'m, E: Entry> {
    /// Remaining children per level, outermost first.
    after: Vec<slice::Iter<'m, Child<E>>>,
    entries: slice::Iter<'m, E>,
}

impl<'m, E: Entry> Entries<'m, E> {
    /// The entries from the first for which `is_before` is false.
    pub(super) fn from(root: &'m Node<E>, is_before: impl Fn(&E::Key) -> bool) -> Self {
        let mut after = Vec::new();
        let mut node = root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let first = entries.partition_point(|entry| is_before(entry.key()));
                    let entries = entries.get(first..).unwrap_or_default().iter();
                    return Entries { after, entries };
                }
                Node::Inner(children) => {
                    let first = children.partition_point(|(smallest, _)| is_before(smallest)).saturating_sub(1);
                    let mut children = children.get(first..).unwrap_or_default().iter();
                    let Some((_, child)) = children.next() else {
                        return Entries { after, entries: [].iter() };
                    };
                    node = child;
                    after.push(children);
                }
            }
        }
    }
}

impl<'m, E: Entry> Iterator for Entries<'m, E> {
    type Item = (&'m E::Key, &'m E::Value);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some((entry.key(), entry.value()));
            }
            match self.after.last_mut()?.next() {
                None => drop(self.after.pop()),
                Some((_, Node::Inner(children))) => self.after.push(children.iter()),
                Some((_, Node::Leaf(entries))) => self.entries = entries.iter(),
            }
        }
    }
}
