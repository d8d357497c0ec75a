//! What this crate makes of the manifests of every story in `tests/stories/claims`, and of the examples: hosts and who has
//! them, rules, statuses, warnings, and what `explain` says of each request of the story.
//!
//! `goldens/` has a file for each, which must be matched. `UPDATE_GOLDENS=1 cargo test -p router-translate --test claims` writes
//! them anew; read the difference. `worlds/` has further stories, which are told here alone. The others are played on the
//! wire by the crate `tests`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

mod asked;
mod cast;
mod certificates;
mod changes;
mod fields;
mod goldens;
mod hosts;
mod policies;
mod statuses;
mod story;
mod world;
