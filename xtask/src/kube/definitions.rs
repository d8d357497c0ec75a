//! Definitions of APIs, from the Go modules in which their projects publish them.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::go::Go;

/// Definitions of each API: a folder of its module, and its name below `target/kube/definitions`.
const DEFINITIONS: [(&str, &str, &str); 3] = [
    ("sigs.k8s.io/gateway-api", "config/crd/standard", "gateway-api/standard"),
    ("sigs.k8s.io/gateway-api", "config/crd/experimental", "gateway-api/experimental"),
    ("github.com/projectcontour/contour", "examples/contour", "contour"),
];

/// Copies the definitions of each API from its module to a folder of its own below `to`.
///
/// # Errors
/// When a module is neither cached nor to be had, or has other folders.
pub fn copy(go: &Go, modules: &Path, to: &Path) -> Result<()> {
    let requires = fs::read_to_string(modules.join("go.mod")).context("reading tests/cluster/definitions/go.mod")?;
    let found = go.download(modules, &required(&requires))?;
    for (module, from, name) in DEFINITIONS {
        let module = found.iter().find(|found| found.path == module).with_context(|| format!("{module} is missing"))?;
        copy_folder(&module.dir.join(from), &to.join(name))?;
    }
    Ok(())
}

/// The modules that a `go.mod` requires in a block, each as `PATH@VERSION`.
fn required(modules: &str) -> Vec<String> {
    let block = modules.lines().skip_while(|line| *line != "require (").skip(1).take_while(|line| *line != ")");
    block.map(|line| line.trim().replacen(' ', "@", 1)).collect()
}

/// Copies the files of a folder that define kinds or policies to a new folder. Those of Go's module cache are read-only.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("removing {}", to.display()))?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let file = entry?.path();
        let Some(name) = file.file_name().filter(|_| file.extension() == Some(OsStr::new("yaml"))) else { continue };
        let text = fs::read_to_string(&file)?;
        if text.contains("\nkind: CustomResourceDefinition\n") || text.contains("\nkind: ValidatingAdmissionPolicy") {
            fs::write(to.join(name), text)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_modules_have_their_versions() {
        let text = "module m\n\nrequire (\n\ta.org/b v1.2.3\n\tc.org/d/v2 v2.0.0\n)\n\nexclude e.org/f v1.0.0\n";
        assert_eq!(required(text), ["a.org/b@v1.2.3", "c.org/d/v2@v2.0.0"]);
    }
}
