//! Compares the parsers with the corpus, with generated input, and with other implementations.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "../common/mod.rs"]
mod common;

mod corpus;
mod generated;
mod httparse_agrees;
mod rustls_agrees;
