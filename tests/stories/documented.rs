//! Tests named in the tables of documents exist.

mod paths;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::workspace;

/// The rows of a document's tables with this header, cell by cell.
fn rows<const CELLS: usize>(document: &str, head: &str) -> Result<Vec<[String; CELLS]>> {
    let text = fs::read_to_string(workspace().join("docs").join(document))?;
    let head = format!("{head}\n{}|\n", "|---".repeat(CELLS));
    let tables: Vec<&str> = text.split(&head).skip(1).collect();
    ensure!(!tables.is_empty(), "no table in {document}");
    let rows = tables.iter().flat_map(|table| table.lines().take_while(|line| line.starts_with('|')));
    let rows = rows.map(|line| {
        let cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        <[String; CELLS]>::try_from(cells).map_err(|cells| anyhow::anyhow!("{document}: {} cells: {line}", cells.len()))
    });
    rows.collect()
}

/// The texts between these delimiters.
fn between(cell: &str, begin: char, end: char) -> Vec<&str> {
    cell.split(begin).skip(1).filter_map(|rest| rest.split_once(end)).map(|(name, _)| name).collect()
}

/// The names of tests: the texts between backticks.
fn names(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Looks for `module::function` in the modules of one of these folders.
fn check(name: &str, folders: &[&str]) -> Result<()> {
    let (module, function) = name.rsplit_once("::").with_context(|| format!("{name} is no test"))?;
    let module = module.replace("::", "/");
    let files = folders.iter().map(|folder| workspace().join(folder).join(&module).with_extension("rs"));
    let sources: Vec<String> = files.filter_map(|file| fs::read_to_string(file).ok()).collect();
    let is_test = |source: &String| {
        let declared = ["#[test]\nfn", "#[tokio::test]\nasync fn"];
        declared.iter().any(|test| source.contains(&format!("{test} {function}(")))
            || (source.contains(&format!("    {function},\n")) && source.contains(&format!("\nfn {function}(")))
    };
    ensure!(sources.iter().any(is_test), "there is no test {name}");
    Ok(())
}

/// Checks a document; returns the subjects of its rows. A cell without a story gives the reason.
fn delegation(document: &str, tables: &str, stories: &[&str]) -> Result<BTreeSet<String>> {
    let rows = rows(document, "| what | from manifests to statuses and look-ups | with traffic |")?;
    for [what, of_tables, of_stories] in &rows {
        let [in_tables, in_stories] = [names(of_tables), names(of_stories)];
        ensure!(!in_tables.is_empty(), "{document}: {what}: no test of the tables");
        ensure!(
            !in_stories.is_empty() || of_stories.starts_with("none: "),
            "{document}: {what}: no story, and no reason"
        );
        in_tables.iter().try_for_each(|name| check(name, &[tables]))?;
        in_stories.iter().try_for_each(|name| check(name, stories))?;
    }
    Ok(rows.into_iter().map(|[what, ..]| what).collect())
}

#[test]
fn what_is_said_to_be_tested_of_delegation_is() -> Result<()> {
    let stories = ["tests/stories/delegation", "tests/stories/delegation/inclusion"];
    let inclusion = delegation("inclusion.md", "router/translate/tests/gateway_api/inclusion", &stories)?;
    ensure!(inclusion.len() == 37, "{} rows of inclusion", inclusion.len());
    let stories = ["tests/stories/delegation", "tests/stories/delegation/subdomains"];
    let contour = delegation("contour.md", "router/translate/src/contour/tests", &stories)?;
    // Each rule, with the cases that it accepts and rejects.
    for rule in 1..=10 {
        ensure!(contour.iter().any(|what| what.starts_with(&format!("S{rule} "))), "nothing is said of S{rule}");
    }
    Ok(())
}

#[test]
fn what_is_said_to_be_tested_of_hostile_input_is() -> Result<()> {
    let stories = [
        "router/tests/proxy_stories",
        "router/tests/proxy_stories/responses",
        "router/tests",
        "router/datapath/tests",
        "tests/stories",
        "tests/stories/http",
        "tests/stories/steer",
        "tests/stories/cleartext",
    ];
    let corpora = ["hellos", "http1_corpus", "http2_corpus", "responses"]
        .map(|corpus| fs::read_to_string(workspace().join("router/tests/proxy_stories").join(corpus).join("rows.rs")));
    let exceptions = workspace().join("router/tests/proxy_stories/guardian/exceptions.rs");
    let exceptions = fs::read_to_string(exceptions)?;
    let corpora = [corpora.into_iter().collect::<Result<Vec<_>, _>>()?.concat(), exceptions.clone()].concat();
    let rows = rows("hostile-input.md", "| case | answer | shown by |")?;
    ensure!(rows.len() > 70, "{} rows", rows.len());
    for [case, _, shown] in &rows {
        let (tests, of_corpora) = (names(shown), between(shown, '“', '”'));
        ensure!(
            !tests.is_empty() || !of_corpora.is_empty() || shown.starts_with("none: "),
            "{case}: no test, and no reason"
        );
        tests.iter().try_for_each(|name| check(name, &stories)).with_context(|| case.clone())?;
        for name in of_corpora {
            ensure!(corpora.contains(&format!("\"{name}\",")), "{case}: no row {name:?}");
        }
    }
    // All rejections beyond those of upstream are listed.
    let lines = exceptions.lines().map(str::trim);
    for line in lines.filter(|line| line.starts_with("compliant(") || line.starts_with("acceptable(")) {
        let name = line.split('"').nth(1).context("a name")?;
        ensure!(rows.iter().any(|[.., shown]| shown.contains(&format!("“{name}”"))), "{name} is not told");
    }
    Ok(())
}

#[test]
fn what_is_said_to_hold_of_an_api_server_is_tested() -> Result<()> {
    let rows = rows("kubernetes.md", "| fault | what holds | story |")?;
    ensure!(rows.len() >= 14, "{} rows", rows.len());
    for [fault, _, stories] in &rows {
        let stories = names(stories);
        ensure!(!stories.is_empty(), "{fault}: no story");
        stories.iter().try_for_each(|name| check(name, &["tests/stories/cluster"])).with_context(|| fault.clone())?;
    }
    Ok(())
}

/// The README's command for the maps uses this build's folder.
#[test]
fn the_readme_names_the_folder_of_the_maps() -> Result<()> {
    let readme = fs::read_to_string(workspace().join("README.md"))?;
    let folder = format!("/sys/fs/bpf/sluice/default/v{}/", router_common::maps::ABI);
    ensure!(readme.contains(&folder), "README.md does not name {folder}");
    Ok(())
}

/// Folders of the tests and test modules that docs/datapath.md names.
const OF_THE_DATA_PATH: [&str; 6] = [
    "tests/stories",
    "router/datapath/tests",
    "router/datapath/src",
    "router/proxy/tests",
    "router/proxy/src",
    "router-common/src",
];

/// The source of a test, `module::function` or `module` in any parent modules; `None` if there is none of that name.
fn source(name: &str) -> Option<String> {
    let read = |path: &str| {
        let files = OF_THE_DATA_PATH.iter().map(|folder| workspace().join(folder).join(path).with_extension("rs"));
        files.filter_map(|file| fs::read_to_string(file).ok()).next()
    };
    let path = name.replace("::", "/");
    read(&path).or_else(|| {
        let (module, last) = path.rsplit_once('/')?;
        let source = read(module)?;
        let has = |what: &str| source.contains(&format!("fn {what}(")) || source.contains(&format!("mod {what}"));
        has(last).then_some(source)
    })
}

/// Every row names an existing test; a row about a limit names a story of that limit.
#[test]
fn what_is_said_to_be_done_about_packets_is_tested() -> Result<()> {
    let rows = rows("datapath.md", "| what | | how it is shown, or seen |")?;
    ensure!(rows.len() > 30, "{} rows", rows.len());
    for [what, how, shown] in &rows {
        let mut last = None;
        let mut found = false;
        for name in names(shown) {
            let is_name =
                |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c));
            if let Some(end) = name.strip_prefix('…') {
                // In the module of the previous name.
                let source: &String = last.as_ref().with_context(|| format!("{what}: {name} goes on with nothing"))?;
                ensure!(source.contains(&format!("{end}(")), "{what}: there is no test {name}");
                continue;
            }
            let of_words = name.split(' ').filter(|word| is_name(word)).find_map(source);
            ensure!(of_words.is_some() || !is_name(name) || !name.contains("::"), "{what}: there is no test {name}");
            found |= of_words.is_some();
            last = of_words.or(last);
        }
        ensure!(found, "{what}: {how}, and no test of it");
        let has_limit = how.starts_with("limit") || how.contains("Limit:");
        ensure!(!has_limit || shown.contains("`limits::"), "{what}: no story of its limit");
    }
    Ok(())
}

/// Each file in the column *after* exists.
#[test]
fn walks_pass_files_that_there_are() -> Result<()> {
    let rows = rows("walks.md", "| step | before | after |")?;
    ensure!(rows.len() > 30, "{} steps", rows.len());
    for [step, _, after] in &rows {
        let files = names(after);
        ensure!(!files.is_empty(), "{step}: no file");
        for file in files {
            ensure!(workspace().join(file).is_file(), "{step}: there is no {file}");
        }
    }
    Ok(())
}

/// The searches of docs/walks.md find the files that it names.
#[test]
fn two_searches_find_why_a_host_was_refused() -> Result<()> {
    let found = |command: &str| -> Result<String> {
        let output = Command::new("sh").args(["-c", command]).current_dir(workspace()).output()?;
        Ok(String::from_utf8(output.stdout)?)
    };
    let text = fs::read_to_string(workspace().join("docs/walks.md"))?;
    let first = text.lines().find(|line| line.starts_with("grep ")).context("the first search")?;
    let first = found(first)?;
    let rows = rows("walks.md", "| object | first search finds | second search | which finds the decision |")?;
    ensure!(rows.len() == 3, "{} kinds", rows.len());
    for [object, finds, second, decides] in &rows {
        let file = |cell: &str| names(cell).first().map(|file| format!("{file}:")).context("a file");
        ensure!(first.contains(&file(finds)?), "{object}: the first search finds {first}");
        let command = names(second).first().copied().context("a command")?;
        let second = found(command)?;
        ensure!(second.contains(&file(decides)?), "{object}: {command} finds {second}");
        ensure!(first.lines().count() <= 12 && second.lines().count() <= 12, "{object}: too much to read");
    }
    Ok(())
}
