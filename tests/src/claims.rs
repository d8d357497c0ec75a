//! Stories for the claims of the documentation: manifests, the response that a real client gets from a real backend,
//! the output of `sluice explain`, and the statuses. `tests/stories/claims/README.md` describes the format.
//!
//! A story's file holds both input and expected output; see [`story`].

pub mod cast;
pub mod command;
pub mod coverage;
pub mod curl;
pub mod docs;
pub mod explained;
mod line;
pub mod outcome;
pub mod placeholders;
pub mod play;
pub mod send;
pub mod short_status;
mod stage;
pub mod story;
mod verbs;
