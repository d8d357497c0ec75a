//! Files, folders, crates and tests named in documents exist.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tests::workspace;

/// Folders of the repository whose paths documents name.
const FOLDERS: [&str; 8] =
    ["router/", "router-common/", "router-ebpf/", "tests/", "xtask/", "docs/", "examples/", "deploy/"];

/// Documents below a folder, without build output.
fn markdown(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_built = path.ends_with("target") || path.ends_with(".git");
        if path.is_dir() && !is_built {
            markdown(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// Documents with the text of their code: all except the changelog; of the walks without the column *before*, which
/// names former files.
fn documents() -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    markdown(&workspace(), &mut found)?;
    found.retain(|document| !document.ends_with("CHANGELOG.md"));
    let read = |document: PathBuf| {
        let of_today = |line: &str| match line.strip_prefix("| ").map(|row| row.split(" | ").collect::<Vec<_>>()) {
            Some(cells) if document.ends_with("docs/walks.md") && cells.len() == 3 => cells[2].to_owned(),
            _ => line.to_owned(),
        };
        let text = fs::read_to_string(&document)?.lines().map(of_today).collect::<Vec<_>>().join("\n");
        Ok((document, text))
    };
    found.into_iter().map(read).collect()
}

/// Words in the code of a document: between backticks, and in code blocks.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).flat_map(str::split_whitespace).map(|word| word.trim_matches(['\'', '"', ',']))
}

/// The paths in a word: `a/{b,c}` contains two; of `a/*/b`, only `a` is checked.
fn paths(word: &str) -> Vec<String> {
    let word = word.split(['*', '<', '#', '…']).next().unwrap_or_default();
    match word.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (names, after))) => names.split(',').map(|name| format!("{before}{name}{after}")).collect(),
        None => vec![word.to_owned()],
    }
}

#[test]
fn documents_name_paths_that_there_are() -> Result<()> {
    let mut named = 0;
    for (document, text) in documents()? {
        let of_the_tree = words(&text).filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)));
        for path in of_the_tree.flat_map(paths) {
            ensure!(workspace().join(&path).exists(), "{}: there is no {path}", document.display());
            named += 1;
        }
    }
    ensure!(named > 150, "{named} paths");
    Ok(())
}

/// The folder of a crate of the workspace, from the list in `Cargo.toml`.
fn folder_of(manifest: &str, package: &str) -> Option<PathBuf> {
    let listed = manifest.lines().find_map(|line| line.strip_prefix(package)?.strip_prefix(" = { path = \""));
    let folder = listed.and_then(|rest| rest.split('"').next()).unwrap_or(package);
    manifest.contains(&format!("    \"{folder}\",\n")).then(|| workspace().join(folder))
}

#[test]
fn commands_name_crates_and_tests_that_there_are() -> Result<()> {
    let manifest = fs::read_to_string(workspace().join("Cargo.toml"))?;
    let (mut crates, mut tests) = (0, 0);
    for (document, text) in documents()? {
        let document = document.display();
        let mut folder = None;
        for (option, value) in words(&text).zip(words(&text).skip(1)) {
            match option {
                "cargo" => folder = None,
                "-p" => {
                    folder = folder_of(&manifest, value);
                    ensure!(folder.is_some(), "{document}: there is no crate {value}");
                    crates += 1;
                }
                "--test" => {
                    let folder = folder.as_ref().with_context(|| format!("{document}: --test {value} of no crate"))?;
                    // The crate `tests` has its sources where others have `src`.
                    let places = ["tests", ".", "stories"].map(|place| folder.join(place).join(value));
                    let is_test =
                        places.iter().any(|at| at.with_extension("rs").is_file() || at.join("main.rs").is_file());
                    ensure!(is_test, "{document}: there is no --test {value} in {}", folder.display());
                    tests += 1;
                }
                _ => {}
            }
        }
    }
    ensure!(crates > 20 && tests > 15, "{crates} crates and {tests} tests");
    Ok(())
}
