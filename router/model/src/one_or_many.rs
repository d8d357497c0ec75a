//! A list that stores a single item inline, without an allocation.

use std::ops::{Deref, DerefMut};
use std::{fmt, slice};

/// A list of fixed length; used as a slice.
#[derive(Clone)]
pub enum OneOrMany<T> {
    /// One item.
    One(T),
    /// Any other number of items.
    Many(Box<[T]>),
}

impl<T> Deref for OneOrMany<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            OneOrMany::One(item) => slice::from_ref(item),
            OneOrMany::Many(items) => items,
        }
    }
}

impl<T> DerefMut for OneOrMany<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            OneOrMany::One(item) => slice::from_mut(item),
            OneOrMany::Many(items) => items,
        }
    }
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        OneOrMany::Many(Box::default())
    }
}

impl<T> From<Vec<T>> for OneOrMany<T> {
    fn from(mut items: Vec<T>) -> Self {
        match (items.pop(), items.is_empty()) {
            (Some(only), true) => OneOrMany::One(only),
            (last, _) => {
                items.extend(last);
                OneOrMany::Many(items.into())
            }
        }
    }
}

impl<T> FromIterator<T> for OneOrMany<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        match (items.next(), items.next()) {
            (Some(only), None) => OneOrMany::One(only),
            (first, second) => OneOrMany::Many(first.into_iter().chain(second).chain(items).collect()),
        }
    }
}

impl<'f, T> IntoIterator for &'f OneOrMany<T> {
    type Item = &'f T;
    type IntoIter = slice::Iter<'f, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PartialEq> PartialEq for OneOrMany<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for OneOrMany<T> {}

impl<T: fmt::Debug> fmt::Debug for OneOrMany<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_items_comes_back() {
        for n in 0..4 {
            let mut few: OneOrMany<u8> = (0..n).collect();
            assert_eq!(*few, *(0..n).collect::<Vec<u8>>());
            assert_eq!(matches!(few, OneOrMany::One(_)), n == 1);
            few.iter_mut().for_each(|item| *item += 1);
            assert_eq!(*few, *(1..=n).collect::<Vec<u8>>());
        }
        assert!(OneOrMany::<u8>::default().is_empty());
        assert_eq!(size_of::<OneOrMany<std::sync::Arc<u8>>>(), size_of::<Box<[u8]>>());
    }
}
