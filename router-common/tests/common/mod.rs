//! Shared by the tests of this crate: builders of ClientHellos, tables of cases, property functions.
#![allow(dead_code, reason = "the unit tests and the integration tests each use a part")]

pub mod drive;
pub mod head_cases;
pub mod hello_build;
pub mod hello_cases;
pub mod properties;
pub mod streams;

use std::borrow::Cow;
use std::vec::Vec;

/// One line of text.
pub type Outcome = Cow<'static, str>;

/// A named input and its expected outcome, in the notation of the corpus manifests.
pub struct Case {
    /// Name of the row, and of the corpus file.
    pub name: &'static str,
    /// The client's bytes.
    pub bytes: Vec<u8>,
    /// In the notation of [`drive::HelloRun::outcome`] and [`drive::HeadRun::outcome`].
    pub outcome: Outcome,
}
