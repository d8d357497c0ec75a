//! The parsers against the corpus, against generated input, and against the readers that others wrote.

#[path = "../common/mod.rs"]
mod common;

mod corpus;
mod generated;
mod httparse_agrees;
mod rustls_agrees;
