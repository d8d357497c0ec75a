//! What every stage speaks of: objects, names and hosts, field paths, certificates, label selectors, and collections whose
//! versions share what they have in common.
#![forbid(unsafe_code)]

pub mod certificate;
pub mod dns_names;
pub mod field;
pub mod kind;
pub mod names;
pub mod object;
pub mod one_or_many;
pub mod persistent;
pub mod selector;
