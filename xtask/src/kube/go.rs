//! Go's command.

use std::path::Path;
use std::process::{Command, Stdio};

/// `go` in a module whose `go.mod` and `go.sum` are final, without C.
pub fn command(module: &Path) -> Command {
    let mut go = Command::new("go");
    go.current_dir(module).stdin(Stdio::null());
    go.env("GO111MODULE", "on")
        .env("GOFLAGS", "-mod=readonly -buildvcs=false")
        .env("GOWORK", "off")
        .env("CGO_ENABLED", "0");
    go
}
