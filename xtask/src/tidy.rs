//! `cargo xtask tidy`: rules about the whole source tree that no compiler checks. `xtask/tidy.toml` lists the existing
//! violations; a listed violation that no longer exists is an error, so the list can only shrink.

use std::path::Path;

use anyhow::{Result, ensure};

mod allowed;
mod crates;
mod cycles;
mod documents;
mod graph;
mod imports;
mod sources;
#[cfg(test)]
mod tests;
mod tree;

use allowed::Allowed;
use tree::Tree;

/// How to run it.
#[derive(Clone, Default, clap::Args)]
pub struct Arguments {
    /// Remove entries from xtask/tidy.toml that no longer exist in the tree.
    #[arg(long)]
    write: bool,
    /// With --write, also add the circles of imports and the unsafe code that the tree has. Each addition needs a reason
    /// that a reviewer accepts: why it cannot be avoided.
    #[arg(long, value_name = "REASON", requires = "write")]
    freeze: Option<String>,
}

/// Checks the tree and prints one line for each violation: `file:line: what, and what to do`.
///
/// # Errors
/// When there is one, or a file cannot be read.
pub fn run(root: &Path, arguments: &Arguments) -> Result<()> {
    let tree = Tree::read(root)?;
    let mut allowed = Allowed::read(root)?;
    if arguments.write {
        allowed.shrink(&tree);
        if let Some(reason) = &arguments.freeze {
            allowed.freeze(&tree, reason);
        }
        allowed.write(root)?;
    }
    let problems = problems(&tree, &allowed);
    problems.iter().for_each(|problem| println!("{problem}"));
    ensure!(problems.is_empty(), "tidy: {} problems, see above", problems.len());
    let (files, crates, circles) = (tree.sources.len(), tree.crates.len(), allowed.circle.len());
    println!("tidy: {files} files and {crates} crates pass; {circles} circles of imports are listed");
    Ok(())
}

fn problems(tree: &Tree, allowed: &Allowed) -> Vec<String> {
    let mut problems = tree.sources.without_documentation();
    problems.extend(documents::dangling(&tree.sources));
    problems.extend(allowed.unsafe_code(tree));
    problems.extend(allowed.dependencies(tree));
    problems.extend(allowed.boundaries(tree));
    problems.extend(allowed.circles(tree));
    problems
}
