//! Types that every stage uses: object keys and metadata, host names, field paths, certificates, label selectors, and
//! persistent collections.
#![forbid(unsafe_code)]

pub mod certificate;
pub mod dns_names;
pub mod field;
pub mod kind;
pub mod names;
pub mod object;
pub mod one_or_many;
pub mod parallel;
pub mod persistent;
pub mod selector;
