//! Writes to an API server, as its audit log has them (audit.k8s.io/v1).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// Writes only, each when it has been answered.
pub const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata, verbs: [create, update, patch, delete, deletecollection]}, {level: None}]
";

/// A write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// User name, such as `system:serviceaccount:sluice:controller`.
    pub user: String,
    /// `User-Agent` of the client.
    pub agent: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// Resource with its subresource: `httproutes/status`.
    pub resource: String,
    /// `NAMESPACE/NAME`; no namespace for an object of the cluster.
    pub object: String,
    /// Status code of the answer.
    pub code: u64,
}

impl Write {
    /// All writes of a log, in its order. A line that is not complete yet is left out.
    ///
    /// # Errors
    /// When the log cannot be read, or is not one.
    pub fn all(log: &Path) -> Result<Vec<Write>> {
        let text = fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
        text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(Write::of).collect()
    }

    fn of(line: &str) -> Result<Write> {
        let event: Value = serde_json::from_str(line).context("a line of an audit log is JSON")?;
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let all = |parts: [Option<String>; 2]| parts.into_iter().flatten().collect::<Vec<_>>().join("/");
        Ok(Write {
            user: text("/user/username").unwrap_or_default(),
            agent: text("/userAgent").unwrap_or_default(),
            verb: text("/verb").context("an event has a verb")?,
            resource: all(["/objectRef/resource", "/objectRef/subresource"].map(text)),
            object: all(["/objectRef/namespace", "/objectRef/name"].map(text)),
            code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_names_its_object_and_subresource() -> Result<()> {
        let line = r#"{"stage":"ResponseComplete","verb":"patch","user":{"username":"u"},"userAgent":"sluice/1",
            "objectRef":{"resource":"httproutes","namespace":"n","name":"r","subresource":"status"},
            "responseStatus":{"metadata":{},"code":409}}"#;
        let write = Write::of(line)?;
        let text = |text: &str| text.to_owned();
        let expected = Write {
            user: text("u"),
            agent: text("sluice/1"),
            verb: text("patch"),
            resource: text("httproutes/status"),
            object: text("n/r"),
            code: 409,
        };
        assert_eq!(write, expected);
        Ok(())
    }
}
