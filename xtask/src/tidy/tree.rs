//! The source tree, as the rules see it.

use std::path::Path;

use anyhow::Result;

use super::crates::{self, Crate};
use super::graph::{self, Graph};
use super::sources::Sources;

/// The source tree.
pub struct Tree {
    pub sources: Sources,
    pub crates: Vec<Crate>,
    /// Imports of each library and program.
    pub graphs: Vec<Graph>,
}

impl Tree {
    /// Reads it.
    ///
    /// # Errors
    /// When a file cannot be read or parsed, or a module has no file.
    pub fn read(root: &Path) -> Result<Tree> {
        let crates = crates::read(root)?;
        Ok(Tree { sources: Sources::read(root)?, graphs: graph::read(root, &crates)?, crates })
    }
}
