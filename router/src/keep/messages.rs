//! Messages of the keeper to stderr.

use std::io::{self, Write};

/// Prints to stderr; a closed stderr must not end the keeper.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "sluice keep: {text}");
}
