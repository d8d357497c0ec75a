//! Sets and maps of nftables, and what may be in them.

use std::cell::Cell;

use super::bits::{Bits, Truth};
use super::rules::Verdict;

/// How the elements of a set stand for keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each for one; sorted by key.
    Exact,
    /// Each begins or ends a range that goes up to the next one; sorted by key.
    Ranges,
    /// Each for the product of ranges of fields, so many bytes each.
    Fields(Vec<usize>),
}

/// What a map has for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// It is a set.
    None,
    /// Bytes.
    Bytes(Box<[u8]>),
    /// A verdict.
    Verdict(Verdict),
}

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its key, or where its range begins.
    pub key: Box<[u8]>,
    /// The last key of the same element ([`Form::Fields`]).
    pub key_end: Option<Box<[u8]>>,
    /// It ends a range ([`Form::Ranges`]).
    pub ends: bool,
    /// It goes by itself, or a further condition is on it.
    pub unsure: bool,
    /// What a map has for it.
    pub value: Value,
}

/// A set or a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    form: Form,
    elements: Vec<Element>,
    /// What stands for all other keys.
    catch_all: Option<Element>,
    /// What is in it changes without notice.
    dynamic: bool,
}

impl Set {
    /// With these elements; one without a key stands for all other keys.
    pub fn new(form: Form, mut elements: Vec<Element>, catch_all: Option<Element>, dynamic: bool) -> Set {
        if form == Form::Ranges {
            elements = joined(elements);
        } else if form == Form::Exact {
            elements.sort_by(|a, b| a.key.cmp(&b.key));
        }
        Set { form, elements, catch_all, dynamic }
    }

    /// All verdicts in it.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> + '_ {
        self.elements.iter().chain(&self.catch_all).filter_map(|element| match element.value {
            Value::Verdict(verdict) => Some(verdict),
            _ => None,
        })
    }

    /// Hands over each value that may be there for a key, and how sure that is. Whether the key has any.
    pub fn look_up<'s>(&'s self, key: Bits<'_>, mut take: impl FnMut(&'s Value, Truth)) -> Truth {
        let any = Cell::new(Truth::No);
        let mut offer = |element: &'s Element, is: Truth| {
            let is = if element.unsure || self.dynamic { is.and(Truth::Perhaps) } else { is };
            if is != Truth::No {
                any.set(any.get().max(is));
                take(&element.value, is);
            }
        };
        match (&self.form, key.is_known()) {
            (Form::Exact, true) => {
                if let Ok(at) = self.elements.binary_search_by(|element| (*element.key).cmp(key.value)) {
                    offer(&self.elements[at], Truth::Yes);
                }
            }
            (Form::Ranges, true) => {
                let after = self.elements.partition_point(|element| *element.key <= *key.value);
                if let Some(element) = after.checked_sub(1).map(|at| &self.elements[at])
                    && !element.ends
                {
                    offer(element, Truth::Yes);
                }
            }
            (Form::Exact, false) => self.elements.iter().for_each(|element| offer(element, key.equals(&element.key))),
            (Form::Ranges, false) => {
                for (at, element) in self.elements.iter().enumerate().filter(|(_, element)| !element.ends) {
                    let below = self.elements.get(at + 1).map_or(Truth::Yes, |next| key.is_less(&next.key));
                    offer(element, key.is_less(&element.key).invert(true).and(below));
                }
            }
            (Form::Fields(fields), _) => {
                self.elements.iter().for_each(|element| offer(element, within(key, element, fields)));
            }
        }
        if any.get() != Truth::Yes
            && let Some(element) = &self.catch_all
        {
            let is = if any.get() == Truth::No { Truth::Yes } else { Truth::Perhaps };
            offer(element, is);
        }
        if self.dynamic { any.get().max(Truth::Perhaps) } else { any.get() }
    }
}

/// Elements in order; where one range ends and the next begins, there is no end.
fn joined(mut elements: Vec<Element>) -> Vec<Element> {
    // An end comes before a beginning with the same key, and gives way to it.
    elements.sort_by(|a, b| a.key.cmp(&b.key).then(b.ends.cmp(&a.ends)));
    let mut sorted: Vec<Element> = Vec::with_capacity(elements.len());
    for element in elements {
        if sorted.last().is_some_and(|last| last.ends && last.key == element.key) {
            sorted.pop();
        }
        sorted.push(element);
    }
    sorted
}

/// Whether each field of a key is within its range. Fields begin at multiples of 4 bytes.
fn within(key: Bits<'_>, element: &Element, fields: &[usize]) -> Truth {
    let end = element.key_end.as_deref().unwrap_or(&element.key);
    let (mut at, mut all) = (0, Truth::Yes);
    for field in fields {
        let range = at..at + field;
        let (Some(low), Some(high)) = (element.key.get(range.clone()), end.get(range)) else { return Truth::Perhaps };
        all = all.and(key.part(at, *field).is_within(low, high));
        at += field.next_multiple_of(4);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(key: &[u8], ends: bool, verdict: Verdict) -> Element {
        Element { key: key.into(), key_end: None, ends, unsure: false, value: Value::Verdict(verdict) }
    }

    fn found(set: &Set, value: &[u8], known: &[u8]) -> (Truth, Vec<(Verdict, Truth)>) {
        let mut all = Vec::new();
        let any = set.look_up(Bits { value, known }, |value, is| match value {
            Value::Verdict(verdict) => all.push((*verdict, is)),
            other => panic!("{other:?}"),
        });
        (any, all)
    }

    #[test]
    fn a_key_is_found_among_single_ones() {
        let set = Set::new(
            Form::Exact,
            vec![element(&[9, 0], false, Verdict::Drop), element(&[7, 0], false, Verdict::Accept)],
            None,
            false,
        );
        assert_eq!(found(&set, &[7, 0], &[255, 255]), (Truth::Yes, vec![(Verdict::Accept, Truth::Yes)]));
        assert_eq!(found(&set, &[8, 0], &[255, 255]), (Truth::No, vec![]));
        assert_eq!(found(&set, &[9, 0], &[255, 0]), (Truth::Perhaps, vec![(Verdict::Drop, Truth::Perhaps)]));
        assert_eq!(found(&set, &[0, 0], &[0, 0]).1.len(), 2);
    }

    #[test]
    fn a_key_is_found_in_ranges_that_touch() {
        let set = Set::new(
            Form::Ranges,
            vec![
                element(&[0], true, Verdict::Continue),
                element(&[20], true, Verdict::Continue),
                element(&[10], false, Verdict::Accept),
                element(&[20], false, Verdict::Drop),
                element(&[30], true, Verdict::Continue),
                element(&[250], false, Verdict::Return),
            ],
            None,
            false,
        );
        let verdict = |key: u8| found(&set, &[key], &[255]).1.first().map(|(verdict, _)| *verdict);
        let keys = [0, 9, 10, 19, 20, 29, 30, 249, 250, 255];
        let verdicts = keys.map(verdict);
        let (accept, drop, back) = (Some(Verdict::Accept), Some(Verdict::Drop), Some(Verdict::Return));
        assert_eq!(verdicts, [None, None, accept, accept, drop, drop, None, None, back, back]);
        // 16 to 31.
        let some = found(&set, &[16], &[0xf0]).1;
        assert_eq!(some, [(Verdict::Accept, Truth::Perhaps), (Verdict::Drop, Truth::Perhaps)]);
    }

    #[test]
    fn fields_are_within_their_ranges_and_others_are_caught() {
        let mut product = element(&[10, 0, 0, 0, 0, 80, 0, 0], false, Verdict::Drop);
        product.key_end = Some([10, 0, 0, 255, 0, 90, 0, 0].into());
        let other = element(&[], false, Verdict::Accept);
        let set = Set::new(Form::Fields(vec![4, 2]), vec![product], Some(other), false);
        let known = [255; 8];
        assert_eq!(found(&set, &[10, 0, 0, 7, 0, 85, 0, 0], &known).1, [(Verdict::Drop, Truth::Yes)]);
        assert_eq!(found(&set, &[10, 0, 1, 7, 0, 85, 0, 0], &known).1, [(Verdict::Accept, Truth::Yes)]);
        assert_eq!(found(&set, &[10, 0, 0, 7, 0, 0, 0, 0], &[255, 255, 255, 255, 0, 0, 255, 255]).1.len(), 2);
    }

    #[test]
    fn what_comes_and_goes_by_itself_is_never_sure() {
        let set = Set::new(Form::Exact, vec![element(&[1], false, Verdict::Drop)], None, true);
        assert_eq!(found(&set, &[1], &[255]).0, Truth::Perhaps);
        assert_eq!(found(&set, &[2], &[255]).0, Truth::Perhaps);
    }
}
