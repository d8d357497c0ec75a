//! docs/benchmarks.md: one section for each benchmark, each written by its own, and a last one written by hand.

use std::path::Path;
use std::{fs, thread};

use anyhow::{Context, Result};

const HEADER: &str = "# Benchmarks\n\nRelease builds. Run them again with the commands below; they write this file, but for its last section.\n";
/// Title of the section that no benchmark writes.
const BY_HAND: &str = "Fewer ways, more rounds\n";

/// Puts a section in the place of the one with this title, or before the one written by hand; the others stay.
pub fn write_section(root: &Path, title: &str, text: &str) -> Result<()> {
    let path = root.join("docs/benchmarks.md");
    let old = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, with_section(&old, title, text)).context("writing docs/benchmarks.md")
}

fn with_section(old: &str, title: &str, text: &str) -> String {
    let new = format!("{title}\n\n{}\n", text.trim());
    let heading = format!("{title}\n");
    let mut sections: Vec<String> =
        old.split("\n## ").skip(1).map(|section| format!("{}\n", section.trim_end())).collect();
    match sections.iter_mut().find(|section| section.starts_with(&heading)) {
        Some(section) => *section = new,
        None => {
            let at = sections.iter().position(|section| section.starts_with(BY_HAND)).unwrap_or(sections.len());
            sections.insert(at, new);
        }
    }
    sections.iter().fold(HEADER.to_owned(), |document, section| format!("{document}\n## {section}"))
}

/// The machine in a few words.
pub fn machine() -> Result<String> {
    let cores = thread::available_parallelism()?;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    // The version; what follows it is the distribution's.
    let kernel = release.trim().splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    Ok(format!("Linux {kernel} with {cores} cores"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_takes_its_own_place_and_leaves_the_others() {
        let first = with_section("", "One", "1\n");
        let second = with_section(&first, "Two", "2");
        assert_eq!(second, format!("{HEADER}\n## One\n\n1\n\n## Two\n\n2\n"));
        assert_eq!(with_section(&second, "One", "3"), format!("{HEADER}\n## One\n\n3\n\n## Two\n\n2\n"));
        let by_hand = format!("{first}\n## {BY_HAND}\nx\n");
        assert_eq!(with_section(&by_hand, "Two", "2"), format!("{second}\n## {BY_HAND}\nx\n"));
    }
}
