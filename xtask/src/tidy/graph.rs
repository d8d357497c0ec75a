//! Which file of a library or program imports which: paths resolved to the files of the modules that they name.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::crates::Crate;
use super::documents::joined;
use super::imports::{self, Imports, ModulePath, Reference};

/// Imports among the files of a library or program.
#[derive(Default)]
pub struct Graph {
    /// Paths relative to the root of the repository.
    pub files: Vec<String>,
    /// For each file those that it imports, with the line of the first import.
    pub imports: Vec<BTreeMap<usize, usize>>,
}

/// Graphs of all libraries and programs of the repository.
pub fn read(root: &Path, crates: &[Crate]) -> Result<Vec<Graph>> {
    let roots = crates.iter().flat_map(|one| &one.roots);
    roots.map(|file| Modules::read(root, file).map(|modules| modules.graph())).collect()
}

/// The modules of a library or program.
#[derive(Default)]
struct Modules {
    files: Vec<String>,
    /// What each file has.
    contents: Vec<Imports>,
    /// The file that has a module.
    file_of: HashMap<ModulePath, usize>,
    /// What names in a module refer to, by its `use` declarations.
    bound: HashMap<(ModulePath, String), Vec<String>>,
}

impl Modules {
    fn read(root: &Path, file: &str) -> Result<Modules> {
        let mut modules = Modules::default();
        modules.add(root, ModulePath::new(), file.to_owned(), true)?;
        for Reference { module, segments, bound, .. } in modules.contents.iter().flat_map(|file| &file.references) {
            if let Some(name) = bound {
                modules.bound.insert((module.clone(), name.clone()), segments.clone());
            }
        }
        Ok(modules)
    }

    /// Reads a file, and those of the modules that it declares. A file like `mod.rs` has them beside it.
    fn add(&mut self, root: &Path, module: ModulePath, file: String, is_like_mod: bool) -> Result<()> {
        let text = fs::read_to_string(root.join(&file)).with_context(|| format!("reading {file}"))?;
        let mut imports = imports::read(&module, &text).with_context(|| format!("parsing {file}"))?;
        let (beside, name) = file.rsplit_once('/').unwrap_or(("", &file));
        let folder = if is_like_mod { beside.to_owned() } else { joined(beside, name.trim_end_matches(".rs")) };
        let declared = std::mem::take(&mut imports.declared);
        self.file_of.extend(imports.inline.iter().map(|module| (module.clone(), self.files.len())));
        self.files.push(file.clone());
        self.contents.push(imports);
        for one in declared {
            let below = joined(&folder, &one.module[module.len()..].join("/"));
            let places = match one.path {
                Some(path) => vec![(joined(beside, &path), true)],
                None => vec![(format!("{below}.rs"), false), (format!("{below}/mod.rs"), true)],
            };
            let found = places.into_iter().find(|(place, _)| root.join(place).is_file());
            let (place, is_like_mod) =
                found.with_context(|| format!("{file} declares a module without a file, {below}"))?;
            self.add(root, one.module, place, is_like_mod)?;
        }
        Ok(())
    }

    fn graph(self) -> Graph {
        let mut imports = vec![BTreeMap::new(); self.files.len()];
        for (importer, content) in self.contents.iter().enumerate() {
            for reference in &content.references {
                let target = self.resolve(&reference.module, &reference.segments, 0).and_then(|path| self.file(&path));
                if let Some(target) = target.filter(|target| *target != importer) {
                    imports[importer].entry(target).or_insert(reference.line);
                }
            }
        }
        Graph { files: self.files, imports }
    }

    /// A path from the root of the crate; `None` for names of other crates.
    fn resolve(&self, module: &[String], segments: &[String], depth: usize) -> Option<ModulePath> {
        let (first, rest) = segments.split_first()?;
        let below = |module: &[String]| Some([module, rest].concat());
        match first.as_str() {
            "crate" => below(&[]),
            "self" => below(module),
            "super" => {
                let (_, parent) = module.split_last()?;
                match rest.first().is_some_and(|next| next == "super") {
                    true => self.resolve(parent, rest, depth),
                    false => below(parent),
                }
            }
            name => {
                let child = [module, &[name.to_owned()]].concat();
                if self.file_of.contains_key(&child) {
                    return below(&child);
                }
                // A name may be bound to itself, as by `use anyhow;`: then it is not of this crate.
                let bound = self.bound.get(&(module.to_vec(), name.to_owned())).filter(|_| depth < 8)?;
                below(&self.resolve(module, bound, depth + 1)?)
            }
        }
    }

    /// The file of the innermost module that a path leads through.
    fn file(&self, path: &[String]) -> Option<usize> {
        (0..=path.len()).rev().find_map(|length| self.file_of.get(&path[..length]).copied())
    }
}
