//! The nodes of the tree.

use std::borrow::Borrow;
use std::slice;
use std::sync::Arc;

/// Maximum number of entries of a leaf and of children of an inner node. A change copies one node per level.
const MAX: usize = 32;
/// A node with fewer is merged with a neighbour that has room.
const MIN: usize = MAX / 4;

/// A subtree, shared between versions. Vectors have no spare capacity.
pub enum Node<K, V> {
    /// Entries, in order.
    Leaf(Arc<Vec<(K, V)>>),
    /// Children, all of the same height and none of them empty, each with its smallest key.
    Inner(Arc<Vec<(K, Node<K, V>)>>),
}

impl<K, V> Clone for Node<K, V> {
    fn clone(&self) -> Self {
        match self {
            Node::Leaf(entries) => Node::Leaf(Arc::clone(entries)),
            Node::Inner(children) => Node::Inner(Arc::clone(children)),
        }
    }
}

impl<K, V> Node<K, V> {
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

impl<K: Ord + Clone, V: Clone> Node<K, V> {
    /// A tree of sorted entries; every node except the last of each level is full.
    pub fn build(entries: Vec<(K, V)>) -> Self {
        let mut level: Vec<(K, Node<K, V>)> = Vec::with_capacity(entries.len().div_ceil(MAX));
        chunks(entries, |key, chunk| level.push((key, Node::Leaf(Arc::new(chunk)))));
        while level.len() > 1 {
            let mut above = Vec::with_capacity(level.len().div_ceil(MAX));
            chunks(level, |key, chunk| above.push((key, Node::Inner(Arc::new(chunk)))));
            level = above;
        }
        level.pop().map_or_else(|| Node::Leaf(Arc::default()), |(_, root)| root)
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut node = self;
        loop {
            match node {
                Node::Inner(children) => node = &children.get(child_of(children, key))?.1,
                Node::Leaf(entries) => {
                    let i = entries.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
                    return entries.get(i).map(|(_, value)| value);
                }
            }
        }
    }

    /// Inserts or replaces; true if the key is new.
    pub fn insert_into_root(&mut self, key: K, value: V) -> bool {
        let mut is_new = false;
        if let Some(right) = self.insert(key, value, &mut is_new)
            && let Some(smallest) = self.smallest().cloned()
        {
            *self = Node::Inner(Arc::new(vec![(smallest, self.clone()), right]));
        }
        is_new
    }

    /// Inserts or replaces; returns the right half if the node was split.
    fn insert(&mut self, key: K, value: V, is_new: &mut bool) -> Option<(K, Self)> {
        match self {
            Node::Leaf(entries) => {
                let entries = Arc::make_mut(entries);
                match entries.binary_search_by(|(known, _)| known.cmp(&key)) {
                    Ok(i) => {
                        if let Some(entry) = entries.get_mut(i) {
                            *entry = (key, value);
                        }
                        None
                    }
                    Err(i) => {
                        *is_new = true;
                        let right = insert_at(entries, i, (key, value))?;
                        Some((right.first()?.0.clone(), Node::Leaf(Arc::new(right))))
                    }
                }
            }
            Node::Inner(children) => {
                let i = child_of(children, &key);
                let children = Arc::make_mut(children);
                let (smallest, child) = children.get_mut(i)?;
                if key < *smallest {
                    *smallest = key.clone();
                }
                let right = child.insert(key, value, is_new)?;
                let right = insert_at(children, i + 1, right)?;
                Some((right.first()?.0.clone(), Node::Inner(Arc::new(right))))
            }
        }
    }

    /// Removes a key, which must be present.
    pub fn remove_from_root<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.remove(key);
        while let Node::Inner(children) = self {
            let [(_, only)] = children.as_slice() else { break };
            *self = only.clone();
        }
    }

    fn remove<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        match self {
            Node::Leaf(entries) => {
                let entries = Arc::make_mut(entries);
                if let Ok(i) = entries.binary_search_by(|(known, _)| known.borrow().cmp(key)) {
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

    fn smallest(&self) -> Option<&K> {
        match self {
            Node::Leaf(entries) => entries.first().map(|(key, _)| key),
            Node::Inner(children) => children.first().map(|(key, _)| key),
        }
    }
}

/// Index of the child whose range contains the key.
fn child_of<K: Borrow<Q>, V, Q: Ord + ?Sized>(children: &[(K, Node<K, V>)], key: &Q) -> usize {
    children.partition_point(|(smallest, _)| smallest.borrow() <= key).saturating_sub(1)
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
fn join_small<K: Ord + Clone, V: Clone>(children: &mut Vec<(K, Node<K, V>)>, i: usize) {
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

fn chunks<K: Clone, T>(items: Vec<(K, T)>, mut take: impl FnMut(K, Vec<(K, T)>)) {
    let mut items = items.into_iter();
    while items.len() > 0 {
        let mut chunk = Vec::with_capacity(items.len().min(MAX));
        chunk.extend(items.by_ref().take(MAX));
        if let Some(smallest) = chunk.first().map(|(key, _): &(K, T)| key.clone()) {
            take(smallest, chunk);
        }
    }
}

/// Iterator over the entries of a map, in order of key.
pub struct Entries<'m, K, V> {
    /// Remaining children per level, outermost first.
    after: Vec<slice::Iter<'m, (K, Node<K, V>)>>,
    entries: slice::Iter<'m, (K, V)>,
}

impl<'m, K, V> Entries<'m, K, V> {
    /// The entries from the first for which `is_before` is false.
    pub(super) fn from(root: &'m Node<K, V>, is_before: impl Fn(&K) -> bool) -> Self {
        let mut after = Vec::new();
        let mut node = root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let first = entries.partition_point(|(key, _)| is_before(key));
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

impl<'m, K, V> Iterator for Entries<'m, K, V> {
    type Item = (&'m K, &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.entries.next() {
                return Some((key, value));
            }
            match self.after.last_mut()?.next() {
                None => drop(self.after.pop()),
                Some((_, Node::Inner(children))) => self.after.push(children.iter()),
                Some((_, Node::Leaf(entries))) => self.entries = entries.iter(),
            }
        }
    }
}
