//! Translates the manifests of every story in `tests/stories/claims`, and of the examples: hosts with their owners,
//! rules, statuses, warnings, and the output of `explain` for each request of the story.
//!
//! The results must equal the file of the story in `goldens/`. `UPDATE_GOLDENS=1 cargo test -p router-translate --test
//! claims` rewrites these files; review the difference. `worlds/` has further stories, which run only here. The crate
//! `tests` plays the others on the wire.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

mod cast;
mod certificates;
mod changes;
mod fields;
mod goldens;
mod hosts;
mod policies;
mod queries;
mod statuses;
mod story;
mod world;
