//! What the keeper says to whoever started it.

use std::io::{self, Write};

/// Says something to whoever started the keeper; nobody listening is no reason to end.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "sluice keep: {text}");
}
