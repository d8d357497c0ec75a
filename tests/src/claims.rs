//! Stories of what the documentation claims: manifests, what a real client gets from a real backend, what
//! `sluice explain` says of it, and the statuses. `tests/stories/claims/README.md` says how a story is written.
//!
//! A story's file holds both what goes in and what must come out; see [`story`].

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
mod stage;
pub mod story;
pub mod told;
mod verbs;
