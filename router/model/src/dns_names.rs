//! The name syntaxes of Kubernetes: RFC 1123 labels and subdomains, label keys are not checked.

/// Longest DNS subdomain.
pub const MAX_SUBDOMAIN: usize = 253;
/// Longest DNS label.
pub const MAX_LABEL: usize = 63;

const LABEL_RULE: &str =
    "use lower-case letters, digits and '-', beginning and ending with a letter or digit (RFC 1123)";

/// What is wrong with a name as an RFC 1123 label; `None`: nothing.
pub fn label_fault(label: &str) -> Option<String> {
    if label.is_empty() {
        return Some("a label is empty; remove the extra dot".to_owned());
    }
    if label.len() > MAX_LABEL {
        return Some(format!("label {label:?} has {} bytes; use at most {MAX_LABEL}", label.len()));
    }
    (!is_label_text(label)).then(|| format!("label {label:?} is not a valid DNS label; {LABEL_RULE}"))
}

/// What is wrong with a name as a lower-case RFC 1123 subdomain, labels of any length; `None`: nothing.
pub fn subdomain_fault(name: &str) -> Option<String> {
    if name.len() > MAX_SUBDOMAIN {
        return Some(format!("has {} bytes; use at most {MAX_SUBDOMAIN}", name.len()));
    }
    let bad = name.split('.').find(|label| label.is_empty() || !is_label_text(label))?;
    Some(if bad.is_empty() {
        "has an empty label; remove the extra dot".to_owned()
    } else {
        format!("label {bad:?} is not a valid DNS label; {LABEL_RULE}")
    })
}

/// Every fault of the single labels of a name.
pub fn label_faults(name: &str) -> Vec<String> {
    name.split('.').filter_map(label_fault).collect()
}

fn is_label_text(label: &str) -> bool {
    let alnum = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = label.as_bytes();
    bytes.iter().all(|byte| alnum(*byte) || *byte == b'-')
        && bytes.first().copied().is_some_and(alnum)
        && bytes.last().copied().is_some_and(alnum)
}
