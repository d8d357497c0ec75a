//! One story for each claim of the documentation; `tests/stories/claims/README.md` describes the format.
//!
//! `cargo test -p tests --test claims openshift/balance` plays one. `UPDATE_GOLDENS=1` writes the actual output into
//! the files; read the diff.

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use tests::claims::play::play;
use tests::claims::story::{self, Story};
use tests::claims::{coverage, docs};

/// Concurrent stories: most of the time they wait for processes.
const AT_ONCE: usize = 4;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("stories/claims");
    let is_update = std::env::var_os("UPDATE_GOLDENS").is_some();
    let stories = match story::all(&folder) {
        Ok(stories) => stories,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials: Vec<Trial> = stories
        .iter()
        .cloned()
        .map(|story| Trial::test(story.name.clone(), move || compare(&story, is_update).map_err(failed)))
        .collect();
    trials.push(Trial::test("coverage", move || {
        let report = coverage::check(&folder, &stories, is_update).map_err(failed)?;
        println!("{report}");
        let known: Vec<&str> = docs::DOCUMENTS.iter().map(|document| document.api).collect();
        match stories.iter().find(|story| !known.contains(&story.api())) {
            Some(story) => Err(format!("{}: its folder is no API; write one of {known:?}", story.name).into()),
            None => Ok(()),
        }
    }));
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(AT_ONCE));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn failed(error: anyhow::Error) -> Failed {
    format!("{error:#}").into()
}

/// Plays a story, and compares its output with that in its file.
fn compare(story: &Story, is_update: bool) -> anyhow::Result<()> {
    let (found, faults) = play(story)?;
    if is_update && found != story.text {
        std::fs::write(&story.file, &found)?;
    }
    anyhow::ensure!(faults.is_empty(), "{}", faults.join("\n"));
    anyhow::ensure!(
        is_update || found == story.text,
        "{} differs (- is expected, + is found), {}",
        story.file.display(),
        story::difference(&story.text, &found)
    );
    Ok(())
}
