//! Kubernetes for the tests, in `target/kube`: one program with every component (`tests/cluster/kube`), built from its Go
//! modules; the definitions of APIs that their projects publish as Go modules (`tests/cluster/definitions`); images for nodes.
//!
//! Go's caches of modules and packages are the user's, so they outlive `target`: what is in them is neither downloaded nor
//! compiled again, Go itself included where the one on the path is too old.

mod definitions;
mod go;
mod images;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use go::Go;

use crate::process;

/// Builds the program, and puts definitions and images beside it; returns where the program is.
///
/// # Errors
/// When there is no Go, a module is neither cached nor to be had, or the build fails.
pub fn build(root: &Path) -> Result<PathBuf> {
    let begin = Instant::now();
    let folder = process::target(root).join("kube");
    let program = folder.join("kube");
    let source = root.join("tests/cluster/kube");
    let modules = fs::read_to_string(source.join("go.mod")).context("reading tests/cluster/kube/go.mod")?;
    let before = inode(&program);
    let go = Go::find(root, &source)?;
    // Symbols that the linker would drop are not made.
    let without = "-gcflags=all=-dwarf=false";
    let build = ["build", "-buildvcs=false", "-trimpath", without, "-ldflags", &flags(&modules)?, "-o"];
    process::run(go.command(&source).args(build).args([&program, &source]))?;
    let what = if before == inode(&program) { "cached" } else { "built" };
    eprintln!("xtask: {}: {what} in {:.1} s", program.display(), begin.elapsed().as_secs_f32());
    definitions::copy(&go, &root.join("tests/cluster/definitions"), &folder.join("definitions"))?;
    images::write(root, &folder.join("images"))?;
    Ok(program)
}

/// Flags of the linker: no symbols, and the version by which the components recognise each other, from a `go.mod`.
fn flags(modules: &str) -> Result<String> {
    let version = modules.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v"));
    let version = version.context("go.mod requires no k8s.io/kubernetes")?;
    let [major, minor, _] = version.split('.').collect::<Vec<_>>()[..] else {
        anyhow::bail!("{version:?} is no version of Kubernetes");
    };
    let set = [("Version", format!("v{version}")), ("Major", major.into()), ("Minor", minor.into())];
    let set = set.iter().map(|(name, value)| format!(" -X k8s.io/component-base/version.git{name}={value}"));
    Ok(format!("-s -w{} -X k8s.io/component-base/version.gitTreeState=clean", set.collect::<String>()))
}

/// Number of a file on its file system. Go renames a new program into place, and only touches one that is up to date.
fn inode(file: &Path) -> Option<u64> {
    fs::metadata(file).ok().map(|file| file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_module() {
        let flags = flags("require (\n\tk8s.io/kubectl v0.36.3\n\tk8s.io/kubernetes v1.36.3\n)\n").unwrap();
        let version = "k8s.io/component-base/version.git";
        assert_eq!(
            flags,
            format!(
                "-s -w -X {version}Version=v1.36.3 -X {version}Major=1 -X {version}Minor=36 -X {version}TreeState=clean"
            )
        );
        assert!(super::flags("require k8s.io/kubectl v0.36.3\n").is_err());
    }
}
