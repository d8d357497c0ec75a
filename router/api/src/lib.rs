//! Parsed API objects: API-server defaulting, validation with field paths, and validated types.
//!
//! One folder per API; `parse` parses an object of any kind, `resources` stores the parsed objects.
#![forbid(unsafe_code)]

pub mod contour;
pub mod defaults;
pub mod fields;
pub mod gate;
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
