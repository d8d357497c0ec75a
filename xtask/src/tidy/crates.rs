//! The crates of the repository and their dependencies, as cargo reads their manifests.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use toml_edit::DocumentMut;

use crate::process::cargo;

/// A crate of the repository.
pub struct Crate {
    /// Name in `Cargo.toml`.
    pub name: String,
    /// Its `Cargo.toml`, relative to the root.
    pub manifest: String,
    /// The crates of the repository that it depends on; what its tests alone use is left out.
    pub dependencies: BTreeSet<String>,
    /// Roots of its library and its programs, relative to the repository's.
    pub roots: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `None` for the code itself, else `build` or `dev`.
    kind: Option<String>,
    /// For a crate of the repository.
    path: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: String,
}

/// The members of the workspace, and of the workspaces that it excludes.
pub fn read(root: &Path) -> Result<Vec<Crate>> {
    let mut manifests = vec![root.join("Cargo.toml")];
    let text = fs::read_to_string(&manifests[0]).context("reading Cargo.toml")?;
    let workspace: DocumentMut = text.parse().context("Cargo.toml")?;
    let excluded = workspace["workspace"].get("exclude").and_then(|exclude| exclude.as_array());
    let excluded = excluded.into_iter().flatten().filter_map(|folder| folder.as_str());
    manifests.extend(excluded.map(|folder| root.join(folder).join("Cargo.toml")));
    let mut crates = Vec::new();
    for manifest in manifests {
        let mut command = cargo(root);
        command.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]).arg(&manifest);
        let output = command.output().context("cargo could not be started")?;
        ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo's metadata")?;
        for package in metadata.packages {
            crates.push(package.into_crate(root)?);
        }
    }
    Ok(crates)
}

impl Package {
    fn into_crate(self, root: &Path) -> Result<Crate> {
        let relative = |path: &str| -> Result<String> {
            let below = Path::new(path).strip_prefix(root).with_context(|| format!("{path} is outside of the tree"))?;
            Ok(below.to_string_lossy().into_owned())
        };
        let of_code = |dependency: &Dependency| dependency.kind.as_deref() != Some("dev");
        let dependencies = self.dependencies.into_iter().filter(|one| one.path.is_some() && of_code(one));
        let is_code = |target: &&Target| target.kind.iter().any(|kind| kind == "bin" || kind.ends_with("lib"));
        Ok(Crate {
            manifest: relative(&self.manifest_path)?,
            dependencies: dependencies.map(|dependency| dependency.name).collect(),
            roots: self
                .targets
                .iter()
                .filter(is_code)
                .map(|target| relative(&target.src_path))
                .collect::<Result<_>>()?,
            name: self.name,
        })
    }
}
