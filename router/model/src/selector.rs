//! Label selectors, with the whole of Kubernetes' meaning (`metav1.LabelSelector`).

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
    /// Has the label, with one of these values.
    In(Vec<String>),
    /// Has it with another value, or has it not.
    NotIn(Vec<String>),
    /// Has the label.
    Exists,
    /// Has it not.
    DoesNotExist,
}

impl LabelSelector {
    /// A selector that wants all of these.
    pub fn new(requirements: Vec<Requirement>) -> Self {
        LabelSelector { requirements }
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected.
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
