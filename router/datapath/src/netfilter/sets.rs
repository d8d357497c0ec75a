//! Sets and maps of nftables, and their possible contents.

use std::cell::Cell;

use super::known_bits::{Bits, Truth};
use crate::netfilter::verdict::RuleVerdict;

/// Relation of a set's elements to keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each element is one key; sorted by key.
    Exact,
    /// Each element begins or ends a range, which extends to the next one; sorted by key.
    Ranges,
    /// Each element is the product of ranges of fields, with these sizes in bytes.
    Fields(Vec<usize>),
}

/// Value of a map's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// None: it is a set.
    None,
    /// Bytes.
    Bytes(Box<[u8]>),
    /// A verdict.
    Verdict(RuleVerdict),
}

/// Validity of what was read of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// Valid until the rules change.
    Surely,
    /// Valid at this moment: it expires, or packets change it.
    ForNow,
    /// Possibly valid: it has a further condition, or is not understood.
    Perhaps,
}

impl Stands {
    fn or(self, other: Stands) -> Stands {
        if self == Stands::Surely { other } else { self }
    }

    /// Limits the certainty of `is` by this validity; `now`: only this moment counts.
    fn limit(self, is: Truth, now: bool) -> Truth {
        if self == Stands::Surely || self == Stands::ForNow && now { is } else { is.and(Truth::Perhaps) }
    }
}

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its key, or the beginning of its range.
    pub key: Box<[u8]>,
    /// The last key of the same element ([`Form::Fields`]).
    pub key_end: Option<Box<[u8]>>,
    /// True if it ends a range ([`Form::Ranges`]).
    pub ends: bool,
    /// Its validity.
    pub stands: Stands,
    /// A map's value for it.
    pub value: Value,
}

/// A set or a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    form: Form,
    elements: Vec<Element>,
    /// The element for all other keys.
    catch_all: Option<Element>,
    /// Validity of its contents.
    stands: Stands,
}

impl Set {
    /// A set of these elements; `catch_all` stands for all other keys.
    pub fn new(form: Form, mut elements: Vec<Element>, catch_all: Option<Element>, stands: Stands) -> Set {
        if form == Form::Ranges {
            elements = joined(elements);
        } else if form == Form::Exact {
            elements.sort_by(|a, b| a.key.cmp(&b.key));
        }
        Set { form, elements, catch_all, stands }
    }

    /// A set of these ranges, each with its lowest and its highest key. They may overlap.
    pub fn of_ranges(mut ranges: Vec<(Vec<u8>, Vec<u8>, Stands)>, stands: Stands) -> Set {
        ranges.sort_by(|a, b| a.0.cmp(&b.0));
        let mut apart: Vec<(Vec<u8>, Vec<u8>, Stands)> = Vec::with_capacity(ranges.len());
        for (low, high, stands) in ranges {
            match apart.last_mut().filter(|last| low <= last.1) {
                Some(last) => (last.1, last.2) = (high.max(std::mem::take(&mut last.1)), last.2.or(stands)),
                None => apart.push((low, high, stands)),
            }
        }
        let edge =
            |key: Vec<u8>, ends, stands| Element { key: key.into(), key_end: None, ends, stands, value: Value::None };
        let edges = apart.into_iter().flat_map(|(low, high, stands)| {
            let after = successor(high).map(|after| edge(after, true, Stands::Surely));
            [Some(edge(low, false, stands)), after].into_iter().flatten()
        });
        Set::new(Form::Ranges, edges.collect(), None, stands)
    }

    /// True if its keys have this size in bytes, or if it is empty.
    pub fn has_keys_of(&self, bytes: usize) -> bool {
        self.elements.first().is_none_or(|element| element.key.len() == bytes)
    }

    /// All verdicts in it.
    pub fn verdicts(&self) -> impl Iterator<Item = RuleVerdict> + '_ {
        self.elements.iter().chain(&self.catch_all).filter_map(|element| match element.value {
            Value::Verdict(verdict) => Some(verdict),
            _ => None,
        })
    }

    /// Passes each possible value of a key to `take`, with its certainty; `now`: at this moment. Returns whether the
    /// key has any.
    pub fn look_up<'s>(&'s self, key: Bits<'_>, now: bool, mut take: impl FnMut(&'s Value, Truth)) -> Truth {
        let any = Cell::new(Truth::No);
        let mut offer = |element: &'s Element, is: Truth| {
            if is != Truth::No {
                let is = self.stands.limit(element.stands.limit(is, now), now);
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
        if self.stands.limit(Truth::Yes, now) == Truth::Yes { any.get() } else { any.get().max(Truth::Perhaps) }
    }
}

/// The next big-endian number of the same size.
fn successor(mut key: Vec<u8>) -> Option<Vec<u8>> {
    let at = key.iter().rposition(|byte| *byte != 0xff)?;
    key[at] += 1;
    key[at + 1..].fill(0);
    Some(key)
}

/// Elements in order; where a range ends at the beginning of another, the end is omitted.
fn joined(mut elements: Vec<Element>) -> Vec<Element> {
    // An end is sorted before a beginning with the same key, and replaced by it.
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

    fn element(key: &[u8], ends: bool, verdict: RuleVerdict) -> Element {
        Element { key: key.into(), key_end: None, ends, stands: Stands::Surely, value: Value::Verdict(verdict) }
    }

    fn found(set: &Set, value: &[u8], known: &[u8]) -> (Truth, Vec<(RuleVerdict, Truth)>) {
        let mut all = Vec::new();
        let any = set.look_up(Bits { value, known }, false, |value, is| match value {
            Value::Verdict(verdict) => all.push((*verdict, is)),
            other => panic!("{other:?}"),
        });
        (any, all)
    }

    #[test]
    fn a_key_is_found_among_single_ones() {
        let set = Set::new(
            Form::Exact,
            vec![element(&[9, 0], false, RuleVerdict::Drop), element(&[7, 0], false, RuleVerdict::Accept)],
            None,
            Stands::Surely,
        );
        assert_eq!(found(&set, &[7, 0], &[255, 255]), (Truth::Yes, vec![(RuleVerdict::Accept, Truth::Yes)]));
        assert_eq!(found(&set, &[8, 0], &[255, 255]), (Truth::No, vec![]));
        assert_eq!(found(&set, &[9, 0], &[255, 0]), (Truth::Perhaps, vec![(RuleVerdict::Drop, Truth::Perhaps)]));
        assert_eq!(found(&set, &[0, 0], &[0, 0]).1.len(), 2);
    }

    #[test]
    fn a_key_is_found_in_ranges_that_touch() {
        let set = Set::new(
            Form::Ranges,
            vec![
                element(&[0], true, RuleVerdict::Continue),
                element(&[20], true, RuleVerdict::Continue),
                element(&[10], false, RuleVerdict::Accept),
                element(&[20], false, RuleVerdict::Drop),
                element(&[30], true, RuleVerdict::Continue),
                element(&[250], false, RuleVerdict::Return),
            ],
            None,
            Stands::Surely,
        );
        let verdict = |key: u8| found(&set, &[key], &[255]).1.first().map(|(verdict, _)| *verdict);
        let keys = [0, 9, 10, 19, 20, 29, 30, 249, 250, 255];
        let verdicts = keys.map(verdict);
        let (accept, drop, back) = (Some(RuleVerdict::Accept), Some(RuleVerdict::Drop), Some(RuleVerdict::Return));
        assert_eq!(verdicts, [None, None, accept, accept, drop, drop, None, None, back, back]);
        // 16 to 31.
        let some = found(&set, &[16], &[0xf0]).1;
        assert_eq!(some, [(RuleVerdict::Accept, Truth::Perhaps), (RuleVerdict::Drop, Truth::Perhaps)]);
    }

    #[test]
    fn fields_are_within_their_ranges_and_others_are_caught() {
        let mut product = element(&[10, 0, 0, 0, 0, 80, 0, 0], false, RuleVerdict::Drop);
        product.key_end = Some([10, 0, 0, 255, 0, 90, 0, 0].into());
        let other = element(&[], false, RuleVerdict::Accept);
        let set = Set::new(Form::Fields(vec![4, 2]), vec![product], Some(other), Stands::Surely);
        let known = [255; 8];
        assert_eq!(found(&set, &[10, 0, 0, 7, 0, 85, 0, 0], &known).1, [(RuleVerdict::Drop, Truth::Yes)]);
        assert_eq!(found(&set, &[10, 0, 1, 7, 0, 85, 0, 0], &known).1, [(RuleVerdict::Accept, Truth::Yes)]);
        assert_eq!(found(&set, &[10, 0, 0, 7, 0, 0, 0, 0], &[255, 255, 255, 255, 0, 0, 255, 255]).1.len(), 2);
    }

    #[test]
    fn what_comes_and_goes_by_itself_is_sure_for_now_alone() {
        let (timed, elements) =
            (Element { stands: Stands::ForNow, ..element(&[1], false, RuleVerdict::Drop) }, Vec::new());
        let is = |set: &Set, key: u8, now| set.look_up(Bits { value: &[key], known: &[255] }, now, |_, _| {});
        let one = Set::new(Form::Exact, vec![timed], None, Stands::Surely);
        assert_eq!([is(&one, 1, false), is(&one, 2, false)], [Truth::Perhaps, Truth::No]);
        assert_eq!([is(&one, 1, true), is(&one, 2, true)], [Truth::Yes, Truth::No]);
        let filled = Set::new(Form::Exact, elements, None, Stands::ForNow);
        assert_eq!([is(&filled, 1, false), is(&filled, 1, true)], [Truth::Perhaps, Truth::No]);
        let limited = Set::new(Form::Exact, vec![element(&[1], false, RuleVerdict::Drop)], None, Stands::Perhaps);
        assert_eq!([is(&limited, 1, true), is(&limited, 2, true)], [Truth::Perhaps, Truth::Perhaps]);
    }

    #[test]
    fn ranges_that_overlap_are_one() {
        let range = |low: u8, high: u8, stands| (vec![low], vec![high], stands);
        let ranges = [(20, 40), (10, 25), (50, 60), (61, 255)].map(|(low, high)| range(low, high, Stands::Surely));
        let set = Set::of_ranges(ranges.to_vec(), Stands::Surely);
        let has = |key: u8| set.look_up(Bits { value: &[key], known: &[255] }, false, |_, _| {}) == Truth::Yes;
        let edges = [9, 10, 40, 41, 49, 50, 60, 61, 255];
        assert_eq!(edges.map(has), [false, true, true, false, false, true, true, true, true]);
        assert!(set.has_keys_of(1) && !set.has_keys_of(4));
    }
}
