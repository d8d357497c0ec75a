//! Texts to trees: places, limits, JSON, syntax errors.

use std::cell::Cell;

use router_model::field::FieldPath;
use serde_json::json;

use super::*;

thread_local! {
    /// Number of parts that this thread has parsed.
    pub static PARSED_PARTS: Cell<usize> = const { Cell::new(0) };
}

/// All documents of a text.
fn read(text: &str, is_json: bool) -> Documents<'_> {
    let mut documents = Documents::default();
    for (part, lines_before) in parts(text, is_json) {
        let read = read_part(part, lines_before, is_json);
        documents.good.extend(read.good);
        documents.broken.extend(read.broken);
    }
    documents
}

fn value(text: &str) -> Value {
    let documents = read(text, false);
    assert_eq!(documents.broken, []);
    let [document] = documents.good.as_slice() else { panic!("{} documents", documents.good.len()) };
    assert_eq!(document.faults, []);
    document.value.clone()
}

fn broken(text: &str) -> String {
    let documents = read(text, false);
    let [fault] = documents.broken.as_slice() else { panic!("not broken: {documents:?}") };
    format!("{}:{}: {}", fault.at.line, fault.at.column, fault.message)
}

#[test]
fn scalars_are_read_by_the_core_schema() {
    let text = "n: [~, null, '']\nb: [true, False, yes]\ni: [1, -2, 0x1f, 0o17, 007]\nf: [1.5, 1e3, .5, 1.2.3, 10., .]\n\
                s: ['1', \"true\", !!str 5, 12h, -x, infinity]\n";
    let expected = json!({
        "n": [null, null, ""],
        "b": [true, false, "yes"],
        "i": [1, -2, 31, 15, 7],
        "f": [1.5, 1000.0, 0.5, "1.2.3", 10.0, "."],
        "s": ["1", "true", "5", "12h", "-x", "infinity"],
    });
    assert_eq!(value(text), expected);
}

#[test]
fn numbers_that_kubectl_reads_otherwise_are_refused_with_what_to_write() {
    for (text, other) in [
        ("0100", 64),
        ("-0100", -64),
        ("+010", 8),
        ("1_000", 1000),
        ("0b101", 5),
        ("-0x1f", -31),
        ("0x1_f", 31),
        ("0_7", 7),
        ("010_0", 64),
    ] {
        let written = format!("a: 1\nb: [{text}]\n");
        let documents = read(&written, false);
        let [fault] = documents.good[0].faults.as_slice() else { panic!("{text}: {documents:?}") };
        let expected = format!(
            "{text} is {other} to kubectl, which reads YAML 1.1; write {other}, or {text:?} where a text is meant"
        );
        assert_eq!((fault.at.line, &*fault.message), (2, &*expected));
        assert_eq!(value(&format!("['{text}', \"{text}\", !!str {text}]")), json!([text, text, text]));
    }
    // Equal numbers for both, or no number for either.
    let same = "[0, 00, 007, 08, 089, 100, -1, 0o17, 0x1f, 0b, 0x, 0b2, 9223372036854775808, 1.0, 2024-01-02, 1h]";
    let Value::Array(same) = value(same) else { panic!("a list") };
    assert_eq!(same[..9], [0, 0, 7, 8, 89, 100, -1, 15, 31].map(Value::from));
}

#[test]
fn anchors_and_merge_keys_are_expanded() {
    let text = "a: &a {x: 1, y: 2}\nb: *a\nc:\n  <<: *a\n  y: 3\nd:\n  <<: [*a, {z: 4}]\n";
    let expected = json!({
        "a": { "x": 1, "y": 2 },
        "b": { "x": 1, "y": 2 },
        "c": { "y": 3, "x": 1 },
        "d": { "x": 1, "y": 2, "z": 4 },
    });
    assert_eq!(value(text), expected);
}

#[test]
fn a_billion_laughs_are_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..10 {
        let items = vec![format!("*a{}", i - 1); 10].join(", ");
        text.push_str(&format!("a{i}: &a{i} [{items}]\n"));
    }
    assert!(broken(&text).contains("more than"), "{}", broken(&text));

    let long = "x".repeat(100_000);
    let text = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 100].join(", "));
    assert!(broken(&text).contains("aliases add more than"), "{}", broken(&text));
}

#[test]
fn deep_nesting_is_refused_however_it_is_written() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    assert!(broken(&deep).starts_with("1:"));
    let mut chain = "a0: &a0 [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]\n".to_owned();
    for i in 1..8 {
        chain.push_str(&format!("a{i}: &a{i} [[[[[[[[[[[[[[[[[[[[*a{}]]]]]]]]]]]]]]]]]]]]\n", i - 1));
    }
    assert!(broken(&chain).contains("nests deeper"), "{}", broken(&chain));
}

#[test]
fn every_value_has_its_place() {
    let text = "# comment\n---\nkind: Route\nspec:\n  to: {name: web}\n  list:\n  - a\n  - b: 1\n";
    let documents = read(text, false);
    let places = &documents.good[0].places;
    let place = |path: &FieldPath| {
        let mark = tree::locate(places, path);
        (mark.line, mark.column)
    };
    let spec = FieldPath::of(&["spec"]);
    assert_eq!(place(&FieldPath::of(&["kind"])), (3, 7));
    assert_eq!(place(&spec.key("to").key("name")), (5, 14));
    assert_eq!(place(&spec.key("list").index(1).key("b")), (8, 8));
    // A missing field is placed at the mapping that lacks it.
    assert_eq!(place(&spec.key("to").key("weight")), (5, 3));
    assert_eq!(place(&spec.key("tls").key("key")), (4, 1));
}

#[test]
fn a_broken_document_leaves_the_others() {
    let text = "a: 1\n---\nb: [\n---\nc: 3\n...\n---\n# nothing\n---\nd: 4\n";
    let documents = read(text, false);
    let values: Vec<Value> = documents.good.iter().map(|document| document.value.clone()).collect();
    assert_eq!(values, [json!({ "a": 1 }), json!({ "c": 3 }), json!({ "d": 4 })]);
    assert_eq!(documents.broken.len(), 1);
    assert!((3..=4).contains(&documents.broken[0].at.line), "{:?}", documents.broken);
    let text = "text: |\n  a\n  --- b\nrest: 1\n---\nx: |-\n  ---\n";
    let values: Vec<Value> = read(text, false).good.iter().map(|document| document.value.clone()).collect();
    assert_eq!(values, [json!({ "text": "a\n--- b\n", "rest": 1 }), json!({ "x": "---" })]);
}

#[test]
fn a_key_that_is_given_twice_is_a_fault_of_the_document() {
    let documents = read("a: 1\nb: 2\na: 3\n", false);
    let [fault] = documents.good[0].faults.as_slice() else { panic!() };
    assert_eq!((fault.at.line, &*fault.message), (3, "key \"a\" is given twice, first in line 1; remove one"));
}

#[test]
fn json_is_read_with_places_where_it_is_yaml_and_without_where_it_is_not() {
    let documents = read("{\n\t\"a\": {\"b\": [1, 2]}\n}\n", true);
    assert_eq!(documents.good[0].value, json!({ "a": { "b": [1, 2] } }));
    let surrogates = read("{\"a\": \"\\ud83d\\ude00\"}", true);
    assert_eq!(surrogates.good[0].value, json!({ "a": "\u{1f600}" }));
    let wrong = read("{\"a\": 1,,}", true);
    assert_eq!(wrong.broken.len(), 1);
    assert_eq!(wrong.broken[0].at.line, 1);
}
