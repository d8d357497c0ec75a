//! `xtask/tidy.toml`: allowed dependencies of crates, forbidden imports, and existing violations. A listed violation
//! that no longer exists is an error, like an unlisted one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use super::crates::Crate;
use super::cycles;
use super::tree::Tree;

/// Where it is, from the root.
pub const FILE: &str = "xtask/tidy.toml";

/// The list.
#[derive(Deserialize)]
pub struct Allowed {
    /// Files, and folders with all files below them, that have unsafe code, with the reason.
    #[serde(rename = "unsafe", default)]
    unsafe_in: BTreeMap<String, String>,
    /// For each crate the others of the repository that it depends on.
    #[serde(default)]
    crates: BTreeMap<String, BTreeSet<String>>,
    #[serde(default)]
    boundary: Vec<Boundary>,
    #[serde(default)]
    pub circle: Vec<Circle>,
}

/// Modules that do not import one another: none of `from` imports one of `to`, itself excepted. Paths without `.rs`.
#[derive(Deserialize)]
struct Boundary {
    from: Vec<String>,
    to: Vec<String>,
    reason: String,
}

/// Files that import one another.
#[derive(Deserialize)]
pub struct Circle {
    pub files: BTreeSet<String>,
    pub reason: String,
}

impl Allowed {
    /// Reads it.
    pub fn read(root: &Path) -> Result<Allowed> {
        let text = fs::read_to_string(root.join(FILE)).with_context(|| format!("reading {FILE}"))?;
        toml_edit::de::from_str(&text).context(FILE)
    }

    /// Writes it; comments stay.
    pub fn write(&self, root: &Path) -> Result<()> {
        let path = root.join(FILE);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {FILE}"))?;
        let mut document: DocumentMut = text.parse().context(FILE)?;
        let table = table(&mut document, "unsafe")?;
        table.retain(|place, _| self.unsafe_in.contains_key(place));
        for (place, reason) in &self.unsafe_in {
            table[place] = value(reason);
        }
        let table = self::table(&mut document, "crates")?;
        table.retain(|name, _| self.crates.contains_key(name));
        for (name, dependencies) in &self.crates {
            table[name] = value(dependencies.iter().collect::<Array>());
        }
        let mut circles = ArrayOfTables::new();
        for circle in &self.circle {
            let mut table = Table::new();
            table["files"] = lines(&circle.files);
            table["reason"] = value(&circle.reason);
            circles.push(table);
        }
        document["circle"] = Item::ArrayOfTables(circles);
        fs::write(&path, document.to_string()).with_context(|| format!("writing {FILE}"))
    }

    /// Removes entries that no longer exist in the tree.
    pub fn shrink(&mut self, tree: &Tree) {
        self.unsafe_in.retain(|place, _| unsafe_code(tree).any(|(path, _)| is_below(path, place)));
        self.crates.retain(|name, _| tree.crates.iter().any(|one| one.name == *name));
        for one in &tree.crates {
            if let Some(dependencies) = self.crates.get_mut(&one.name) {
                dependencies.retain(|dependency| one.dependencies.contains(dependency));
            }
        }
        for Circle { files, reason } in std::mem::take(&mut self.circle) {
            let left = cycles::left(&tree.graphs, &files).into_iter();
            self.circle.extend(left.map(|files| Circle { files, reason: reason.clone() }));
        }
    }

    /// Adds the unsafe code and the circles of the tree. Which crate may depend on which is written by hand.
    pub fn freeze(&mut self, tree: &Tree, reason: &str) {
        let added: Vec<String> = self.unlisted_unsafe(tree).map(|(path, _)| path.to_owned()).collect();
        self.unsafe_in.extend(added.into_iter().map(|path| (path, reason.to_owned())));
        for files in cycles::all(&tree.graphs) {
            if !self.circle.iter().any(|listed| listed.files.is_superset(&files)) {
                self.circle.retain(|listed| listed.files.is_disjoint(&files));
                self.circle.push(Circle { files, reason: reason.to_owned() });
            }
        }
    }

    /// Unsafe code outside the listed files and folders, and listed ones without.
    pub fn unsafe_code(&self, tree: &Tree) -> Vec<String> {
        let has_none = |place: &&String| !unsafe_code(tree).any(|(path, _)| is_below(path, place));
        let unlisted = self.unlisted_unsafe(tree).map(|(path, line)| {
            format!("{path}:{line}: unsafe code outside the files and folders that {FILE} lists under `unsafe`")
        });
        let stale = self.unsafe_in.keys().filter(has_none);
        let stale = stale.map(|place| format!("{FILE}: {place} has no unsafe code; delete it from `unsafe`"));
        unlisted.chain(stale).collect()
    }

    fn unlisted_unsafe<'a>(&self, tree: &'a Tree) -> impl Iterator<Item = (&'a str, usize)> {
        unsafe_code(tree).filter(|(path, _)| !self.unsafe_in.keys().any(|place| is_below(path, place)))
    }

    /// Dependencies between crates that are not listed, and listed ones that do not exist.
    pub fn dependencies(&self, tree: &Tree) -> Vec<String> {
        let none = BTreeSet::new();
        let mut problems = Vec::new();
        for Crate { name, manifest, dependencies, .. } in &tree.crates {
            let listed = self.crates.get(name);
            if listed.is_none() {
                problems.push(format!("{manifest}: {FILE} does not list the crate {name} under `crates`"));
            }
            let listed = listed.unwrap_or(&none);
            let unlisted = dependencies.difference(listed);
            problems.extend(unlisted.map(|to| format!("{manifest}: {name} may not depend on {to}, see {FILE}")));
            let stale = listed.difference(dependencies);
            let stale =
                stale.map(|to| format!("{FILE}: {name} does not depend on {to}; delete it from `crates.{name}`"));
            problems.extend(stale);
        }
        let exists = |name: &str| tree.crates.iter().any(|one| one.name == name);
        let stale = self.crates.keys().filter(|name| !exists(name));
        problems.extend(stale.map(|name| format!("{FILE}: there is no crate {name}; delete it from `crates`")));
        problems
    }

    /// Imports across a boundary, and boundaries of modules that do not exist.
    pub fn boundaries(&self, tree: &Tree) -> Vec<String> {
        let mut problems = Vec::new();
        let module_of = |path: &str, modules: &[String]| modules.iter().find(|one| is_below(path, one)).cloned();
        for Boundary { from, to, reason } in &self.boundary {
            let files = || tree.graphs.iter().flat_map(|graph| &graph.files);
            let missing = from.iter().chain(to).filter(|module| !files().any(|file| is_below(file, module)));
            problems.extend(missing.map(|module| format!("{FILE}: there is no module {module}, named in a boundary")));
            for graph in &tree.graphs {
                for (importer, imports) in graph.files.iter().zip(&graph.imports) {
                    let Some(inside) = module_of(importer, from) else { continue };
                    for (imported, line) in imports.iter().map(|(file, line)| (&graph.files[*file], line)) {
                        if module_of(imported, to).is_some_and(|module| module != inside) {
                            problems.push(format!("{importer}:{line}: may not import {imported}: {reason}"));
                        }
                    }
                }
            }
        }
        problems
    }

    /// Circles of imports that are not listed, each with its shortest new one, and listed ones that are smaller or gone.
    pub fn circles(&self, tree: &Tree) -> Vec<String> {
        let mut problems = Vec::new();
        for graph in &tree.graphs {
            for circle in graph.circles(|_| true) {
                let files: BTreeSet<String> = circle.iter().map(|file| graph.files[*file].clone()).collect();
                if self.circle.iter().any(|listed| listed.files.is_superset(&files)) {
                    continue;
                }
                let listed = |from: &str, to: &str| {
                    self.circle.iter().any(|one| one.files.contains(from) && one.files.contains(to))
                };
                let way = graph.shortest(&circle, listed);
                let first = &graph.files[way[0]];
                problems
                    .push(format!("{first}: a circle of imports that {FILE} does not list:\n{}", graph.steps(&way)));
            }
        }
        for Circle { files, .. } in &self.circle {
            let left = cycles::left(&tree.graphs, files);
            if left != [files.clone()] {
                let first = files.first().map_or("", String::as_str);
                let (listed, left) = (files.len(), left.iter().map(BTreeSet::len).sum::<usize>());
                problems.push(format!(
                    "{FILE}: of the {listed} files of the circle of {first}, {left} are left in one; \
                     delete the others (`cargo xtask tidy --write`)"
                ));
            }
        }
        problems
    }
}

/// Files with unsafe code, and where it begins.
fn unsafe_code(tree: &Tree) -> impl Iterator<Item = (&str, usize)> {
    tree.sources.code.iter().filter_map(|(path, code)| Some((path.as_str(), code.unsafe_line?)))
}

/// Whether a path is a module's file, one below it, or a folder's.
fn is_below(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| ["", ".rs"].contains(&rest) || rest.starts_with('/'))
}

/// A table; added if there is none.
fn table<'d>(document: &'d mut DocumentMut, name: &str) -> Result<&'d mut Table> {
    let table = document.entry(name).or_insert(Item::Table(Table::new()));
    table.as_table_mut().with_context(|| format!("{FILE}: `{name}` is not a table"))
}

/// An array with a line for each item.
fn lines(items: &BTreeSet<String>) -> Item {
    let mut array: Array = items.iter().collect();
    array.iter_mut().for_each(|item| item.decor_mut().set_prefix("\n    "));
    if !array.is_empty() {
        array.set_trailing("\n");
        array.set_trailing_comma(true);
    }
    value(array)
}
