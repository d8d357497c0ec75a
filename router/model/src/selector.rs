//! Label selectors with Kubernetes' semantics (`metav1.LabelSelector`).

use crate::object::TextMap;

/// `matchLabels` and `matchExpressions`, ANDed; empty selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Label.
    pub key: String,
    /// Condition.
    pub operator: Operator,
}

/// `matchExpressions[].operator` with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label has one of these values.
    In(Vec<String>),
    /// The label is absent, or has another value.
    NotIn(Vec<String>),
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl LabelSelector {
    /// A selector that requires all of these labels.
    pub fn new(requirements: Vec<Requirement>) -> Self {
        LabelSelector { requirements }
    }

    /// Whether it selects every object.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether it selects an object with these labels.
    pub fn matches(&self, labels: &TextMap) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            match &requirement.operator {
                Operator::In(values) => value.is_some_and(|value| values.iter().any(|known| known == value)),
                Operator::NotIn(values) => value.is_none_or(|value| !values.iter().any(|known| known == value)),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
    }
}

#[cfg(test)]
mod tests;
