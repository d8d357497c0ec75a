//! Objects as manifests give them: API-server defaulting, validation with field paths, and types that cannot be wrong.
//!
//! One folder for each API; `parse` reads an object of any kind, `resources` holds all that were read.
#![forbid(unsafe_code)]

pub mod contour;
pub mod defaults;
pub mod fields;
pub mod gateway_api;
pub mod go_duration;
pub(crate) mod header_names;
pub mod immutable;
pub mod kubernetes;
pub mod meta;
pub mod object;
pub mod openshift;
pub mod parse;
pub mod path_settings;
pub mod redirect;
pub mod resources;
pub(crate) mod selector;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod unread;
pub mod update;

#[cfg(test)]
mod documented;
