//! Files that a tool must render before they are manifests: Helm charts and their templates, kustomizations.

use std::sync::Arc;

use super::diagnostic::{Diagnostic, Severity};

const CHART: &str =
    "belongs to a Helm chart; render the chart and give the result instead: `helm template CHART > rendered.yaml`";
const KUSTOMIZATION: &str =
    "belongs to kustomize; build it and give the result instead: `kubectl kustomize DIR > rendered.yaml`";
const TEMPLATE: &str = "is a template ({{ … }}); render it first: `helm template CHART > rendered.yaml`";

/// Explains which tool has to render a file with errors. Errors of a file that is never a manifest are dropped.
pub fn explain(file: &Arc<str>, text: &str, diagnostics: &mut Vec<Diagnostic>) {
    let whole = match file.rsplit('/').next() {
        Some("Chart.yaml" | "values.yaml") => Some(CHART),
        Some("kustomization.yaml" | "kustomization.yml") => Some(KUSTOMIZATION),
        _ => None,
    };
    if let Some(message) = whole {
        diagnostics.clear();
        diagnostics.push(Diagnostic::of_file(file, Severity::Error, message));
        return;
    }
    let Some((line, column)) = text.lines().zip(1..).find_map(|(text, line)| Some((line, text.find("{{")?))) else {
        return;
    };
    if text.contains("}}") {
        let column = u32::try_from(column).map_or(1, |before| before + 1);
        diagnostics.push(Diagnostic { line, column, ..Diagnostic::of_file(file, Severity::Error, TEMPLATE) });
    }
}
