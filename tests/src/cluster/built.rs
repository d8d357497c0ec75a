//! What `cargo xtask build-kube` makes.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The file or folder of this name.
///
/// # Errors
/// When it is missing.
pub fn built(name: &str) -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let found = test.ancestors().map(|folder| folder.join("kube").join(name)).find(|path| path.exists());
    found.with_context(|| format!("target/kube/{name} is missing: run `cargo xtask build-kube`"))
}
