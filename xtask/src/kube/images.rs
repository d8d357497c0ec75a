//! Images for the nodes of the tests' clusters; nodes pull nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{image, process};

/// Builds the images into a folder.
///
/// # Errors
/// When the C compiler fails, or a file cannot be written.
pub fn write(root: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let pause = folder.join("pause");
    let source = root.join("tests/cluster/node/pause.c");
    process::run(Command::new("cc").args(["-static", "-Os", "-s", "-o"]).arg(&pause).arg(source))?;
    image::write(&folder.join("pause.tar"), "sluice.test/pause:1", &["/pause"], &[("/pause", &pause)])
}
