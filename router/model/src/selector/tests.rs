//! Each operator against a label that has a listed value, another one, or is not there (API: LabelSelectorRequirement).

use super::*;

fn labels(value: Option<&str>) -> TextMap {
    value.into_iter().map(|value| ("app".to_owned(), value.to_owned())).collect()
}

#[test]
fn operators_are_those_of_the_api() {
    let values = || vec!["a".to_owned(), "b".to_owned()];
    let cases = [
        (Operator::In(values()), [true, false, false]),
        (Operator::NotIn(values()), [false, true, true]),
        (Operator::Exists, [true, true, false]),
        (Operator::DoesNotExist, [false, false, true]),
    ];
    for (operator, expected) in cases {
        let shown = format!("{operator:?}");
        let selector = LabelSelector::new(vec![Requirement { key: "app".into(), operator }]);
        let found = [Some("b"), Some("c"), None].map(|value| selector.matches(&labels(value)));
        assert_eq!(found, expected, "{shown}");
        assert!(!selector.is_empty());
    }
}

#[test]
fn all_requirements_must_hold_and_none_selects_everything() {
    let has = |key: &str| Requirement { key: key.into(), operator: Operator::Exists };
    let both = LabelSelector::new(vec![has("app"), has("tier")]);
    assert!(!both.matches(&labels(Some("a"))));
    assert!(LabelSelector::default().is_empty() && LabelSelector::default().matches(&labels(None)));
}
