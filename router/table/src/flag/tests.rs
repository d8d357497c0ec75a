//! The list of causes, and the table in the documentation.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Flag;

/// The rows of `docs/causes.md`: cause, status, flag, state.
fn rows() -> Vec<[String; 4]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/causes.md");
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")).map(|line| {
        let mut cells = line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned());
        [(); 4].map(|()| cells.next().unwrap())
    });
    rows.collect()
}

#[test]
fn every_cause_is_a_row_of_the_table_and_every_row_a_cause() {
    let listed: Vec<_> = Flag::ALL.iter().map(|flag| [flag.cause(), flag.code(), flag.termination()]).collect();
    let rows = rows();
    let told: Vec<_> = rows.iter().map(|[cause, _, code, state]| [cause.as_str(), code, state]).collect();
    assert_eq!(told, listed);
}

#[test]
fn every_cause_has_a_word_of_its_own_that_a_header_can_have() {
    let words: BTreeSet<&str> = Flag::ALL.iter().map(|flag| flag.cause()).collect();
    assert_eq!(words.len(), Flag::ALL.len());
    for word in words {
        assert!(word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{word}");
    }
}

#[test]
fn causes_of_one_kind_differ_by_step() {
    for flag in Flag::ALL {
        assert_eq!(flag.termination().len(), 2, "{flag:?}");
        assert_eq!(*flag == Flag::Fine, flag.code() == "-", "{flag:?}");
    }
}
