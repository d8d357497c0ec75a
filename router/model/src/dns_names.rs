//! Kubernetes' name syntaxes: RFC 1123 labels and subdomains.

/// Maximum length of a DNS subdomain, in bytes.
pub const MAX_SUBDOMAIN: usize = 253;
/// Maximum length of a DNS label, in bytes.
pub const MAX_LABEL: usize = 63;

const LABEL_RULE: &str =
    "use lower-case letters, digits and '-', beginning and ending with a letter or digit (RFC 1123)";

/// The fault of a name as an RFC 1123 label, if any.
pub fn label_fault(label: &str) -> Option<String> {
    if label.is_empty() {
        return Some("a label is empty; remove the extra dot".to_owned());
    }
    if label.len() > MAX_LABEL {
        return Some(format!("label {label:?} has {} bytes; use at most {MAX_LABEL}", label.len()));
    }
    (!is_label_text(label)).then(|| format!("label {label:?} is not a valid DNS label; {LABEL_RULE}"))
}

/// The fault of a name as a lower-case RFC 1123 subdomain, if any. The length of labels is not checked.
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

/// The faults of all labels of a name.
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
