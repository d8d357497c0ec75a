//! Replays `corpus/`: each file has the outcome in its manifest, however it is split.
//!
//! With `SLUICE_WRITE_CORPUS` set, this test writes the files of the tables in `common`; otherwise it compares them
//! with the tables. Captured files are listed in the manifest only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::drive::{HeadRun, HelloRun, cuts, halves, singly};
use crate::common::{Case, head_cases, hello_cases, properties};

/// Larger inputs, in bytes, are built by the tests instead of stored.
const MAX_FILE: usize = 20_000;
/// Most bytes of all files together in the repository.
const MAX_CORPUS: u64 = 300_000;

#[test]
fn hello_files_are_those_of_the_table() {
    check_files("hello", "bin", &hello_cases::all());
}

#[test]
fn head_files_are_those_of_the_table() {
    check_files("head", "txt", &head_cases::all());
}

#[test]
fn every_hello_has_the_outcome_of_its_manifest() {
    for (name, (bytes, outcome)) in read("hello") {
        let whole = HelloRun::over([&bytes[..]]);
        assert_eq!(whole.outcome(), outcome, "{name}");
        assert_eq!(HelloRun::over(singly(&bytes)), whole, "{name} byte by byte");
        for at in cuts(bytes.len()) {
            assert_eq!(HelloRun::over(halves(&bytes, at)), whole, "{name} cut at {at}");
        }
        properties::client_hello(&bytes);
    }
}

#[test]
fn every_head_has_the_outcome_of_its_manifest() {
    for (name, (bytes, outcome)) in read("head") {
        let whole = HeadRun::over([&bytes[..]]);
        assert_eq!(whole.outcome(), outcome, "{name}");
        assert_eq!(HeadRun::over(singly(&bytes)), whole, "{name} byte by byte");
        for at in cuts(bytes.len()).filter(|at| *at < 700 || at % 1009 == 0) {
            assert_eq!(HeadRun::over(halves(&bytes, at)), whole, "{name} cut at {at}");
        }
        properties::request_head(&bytes);
    }
}

#[test]
fn every_host_name_seed_holds_the_properties() {
    let seeds = fs::read_to_string(directory("hostname").join("names.txt")).expect("the seeds are there");
    assert!(seeds.lines().count() > 20);
    for seed in seeds.lines() {
        properties::host_name(seed.as_bytes());
    }
}

#[test]
fn each_parser_holds_the_properties_on_the_other_ones_corpus() {
    for (_, (bytes, _)) in read("hello") {
        properties::request_head(&bytes);
        properties::host_name(&bytes);
    }
    for (_, (bytes, _)) in read("head") {
        properties::client_hello(&bytes);
        properties::host_name(&bytes);
    }
}

#[test]
fn the_corpus_stays_small() {
    let size: u64 = ["hello", "head", "hostname"].into_iter().map(|kind| directory_size(&directory(kind))).sum();
    assert!(size < MAX_CORPUS, "{size} bytes");
}

/// Files of one kind by name, each with its line of the manifest. The test fails on a file without a line, and on a
/// line without a file.
pub(crate) fn read(kind: &str) -> BTreeMap<String, (Vec<u8>, String)> {
    let directory = directory(kind);
    let mut outcomes = manifest(&directory);
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(&directory).expect("the corpus is there") {
        let path = entry.expect("the corpus can be listed").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("names are plain").to_owned();
        if name == MANIFEST {
            continue;
        }
        let outcome = outcomes.remove(&name).unwrap_or_else(|| panic!("{name} has no line in the manifest"));
        files.insert(name, (fs::read(&path).expect("the file can be read"), outcome));
    }
    assert!(outcomes.is_empty(), "lines without a file: {outcomes:?}");
    files
}

const MANIFEST: &str = "MANIFEST";

fn directory(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(kind)
}

fn directory_size(path: &Path) -> u64 {
    let entries = fs::read_dir(path).expect("the corpus is there");
    entries.map(|entry| entry.expect("listed").metadata().expect("has a size").len()).sum()
}

/// Parses `<file> <outcome>` lines; lines that begin with `#` are comments.
fn manifest(directory: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(directory.join(MANIFEST)).expect("the manifest is there");
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap_or_else(|| panic!("no outcome: {line}")))
        .map(|(name, outcome)| (name.to_owned(), outcome.to_owned()))
        .collect()
}

fn check_files(kind: &str, extension: &str, cases: &[Case]) {
    let directory = directory(kind);
    let kept = || cases.iter().filter(|case| case.bytes.len() <= MAX_FILE);
    let file = |case: &Case| format!("{}.{extension}", case.name);
    if std::env::var_os("SLUICE_WRITE_CORPUS").is_some() {
        let mut lines = manifest(&directory);
        lines.retain(|name, _| name.starts_with("captured-"));
        for case in kept() {
            fs::write(directory.join(file(case)), &case.bytes).expect("the corpus can be written");
            lines.insert(file(case), case.outcome.to_string());
        }
        let comment = "# <file> <outcome>: what the parser says of the file's bytes, however they are cut.\n";
        let lines: String = lines.into_iter().map(|(name, outcome)| format!("{name} {outcome}\n")).collect();
        fs::write(directory.join(MANIFEST), [comment, &lines].concat()).expect("the manifest can be written");
    }
    let mut files = read(kind);
    for case in kept() {
        let found = files.remove(&file(case));
        let found = found.unwrap_or_else(|| panic!("no {}: run with SLUICE_WRITE_CORPUS=1", file(case)));
        assert!(found.0 == case.bytes, "{} is not as the table has it: run with SLUICE_WRITE_CORPUS=1", case.name);
        assert_eq!(found.1, case.outcome, "manifest line of {}", case.name);
    }
    assert!(files.keys().all(|name| name.starts_with("captured-")), "not of the table: {:?}", files.keys());
}
