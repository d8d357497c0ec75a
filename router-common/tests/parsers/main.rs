//! The parsers against the corpus, against generated input, and against the readers that others wrote.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "../common/mod.rs"]
mod common;

mod corpus;
mod generated;
mod httparse_agrees;
mod rustls_agrees;
