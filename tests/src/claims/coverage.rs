//! Checks that each claim of the documentation has a story.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use super::docs::{DOCUMENTS, Document, claims};
use super::story::Story;
use crate::workspace;

/// Claims without a story, `API: claim`, in the folder of the stories. The list may only shrink.
pub const WITHOUT: &str = "without-a-story.txt";

/// Compares the documentation with the stories; returns the counts.
///
/// # Errors
/// All mismatches.
pub fn check(folder: &Path, stories: &[Story], is_update: bool) -> Result<String> {
    let listed = fs::read_to_string(folder.join(WITHOUT)).unwrap_or_default();
    let mut listed: BTreeSet<&str> = listed.lines().filter(|line| !line.is_empty()).collect();
    let (mut faults, mut report, mut still) = (Vec::new(), Vec::new(), Vec::new());
    for document in DOCUMENTS {
        let documented = claims(document, &fs::read_to_string(workspace().join(document.path))?)?;
        let of_api: Vec<&Story> = stories.iter().filter(|story| story.api() == document.api).collect();
        let shown = shown(document, &documented, &of_api, &mut faults);
        for claim in &documented {
            let line = format!("{}: {claim}", document.api);
            match (shown.contains_key(claim.as_str()), listed.remove(line.as_str())) {
                (false, false) => faults.push(format!("{}: no story shows {claim:?}", document.path)),
                (false, true) => still.push(line),
                (true, true) if !is_update => {
                    faults.push(format!("{WITHOUT}: {line:?} has a story now ({}); remove it", shown[claim.as_str()]));
                }
                (true, _) => {}
            }
        }
        let count = documented.iter().filter(|claim| shown.contains_key(claim.as_str())).count();
        report.push(format!(
            "{}: {} lines claimed, {count} shown, {} stories",
            document.api,
            documented.len(),
            of_api.len()
        ));
    }
    if is_update {
        fs::write(folder.join(WITHOUT), still.iter().map(|line| format!("{line}\n")).collect::<String>())?;
    } else {
        faults.extend(listed.iter().map(|line| format!("{WITHOUT}: {line:?} is not claimed any more; remove it")));
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(report.join("\n"))
}

/// The claims covered by the stories of a document, each with its story.
fn shown(
    document: &Document,
    documented: &[String],
    stories: &[&Story],
    faults: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    for story in stories {
        let claimed = story.list("claims");
        if claimed.is_empty() {
            faults.push(format!("{}: claims nothing; write `claims: …` into its head", story.name));
        }
        for claim in claimed {
            if !documented.contains(&claim) {
                faults.push(format!("{}: {claim:?} is no line of {}", story.name, document.path));
            }
            shown.entry(claim).or_insert_with(|| story.name.clone());
        }
    }
    shown
}
