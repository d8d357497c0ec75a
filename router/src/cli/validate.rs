//! `sluice validate DIR|FILE`: all problems of a folder of manifests, each with its place and what to write instead.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use jiff::Timestamp;
use router_api::defaults::Defaults;
use router_model::field::FieldPath;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_proxy::UpstreamTls;
use router_translate::advice::advice;
use router_translate::explain::facts::Facts;
use router_translate::settings::Settings;
use router_translate::status::object_status::{ParentStatus, faults};
use router_translate::translate::{Translation, translate};

use crate::source::{Diagnostic, Severity, Source, SourceOptions};

/// Exit code for invalid input.
pub const INVALID: u8 = 3;

/// Result of `validate`.
#[derive(Debug)]
pub struct ValidationReport {
    /// The problems, in order of place.
    pub problems: Vec<Diagnostic>,
    /// Number of objects.
    pub objects: usize,
}

impl ValidationReport {
    /// Number of errors.
    pub fn errors(&self) -> usize {
        self.problems.iter().filter(|problem| problem.severity == Severity::Error).count()
    }

    /// Summary in one sentence.
    pub fn summary(&self) -> String {
        let (errors, warnings) = (self.errors(), self.problems.len() - self.errors());
        let count = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        format!("{}, {}, {}", count(self.objects, "object"), count(errors, "error"), count(warnings, "warning"))
    }
}

/// Prints the problems of a source to stdout and a summary to stderr; exit code 3 if there is an error.
///
/// # Errors
/// The source cannot be read, or stdout cannot be written.
pub fn run(
    source: &SourceOptions,
    settings: &Settings,
    trust: &UpstreamTls,
    now: Timestamp,
) -> anyhow::Result<ExitCode> {
    let findings = validate(source, settings, trust, now)?;
    let mut out = std::io::stdout().lock();
    for problem in &findings.problems {
        writeln!(out, "{}", source.display(problem)).context("cannot write to stdout")?;
    }
    eprintln!("{}", findings.summary());
    Ok(if findings.errors() == 0 { ExitCode::SUCCESS } else { ExitCode::from(INVALID) })
}

/// Reads a source and collects its problems: faults of single objects, and as warnings those that only several objects
/// together show, such as a host that two routes claim. Certificates are checked as of `now`.
///
/// # Errors
/// The source cannot be read.
pub fn validate(
    source: &SourceOptions,
    settings: &Settings,
    trust: &UpstreamTls,
    now: Timestamp,
) -> anyhow::Result<ValidationReport> {
    let defaults = Defaults { cluster_domain: settings.cluster_domain.clone() };
    let (source, snapshot) = Source::read(source, defaults)?;
    let resources = &snapshot.resources;
    let translation = translate(resources, settings);
    let mut problems = snapshot.diagnostics.to_vec();
    let Translation { table, report, .. } = &translation;
    let advised = advice(Facts::of(table, report, resources, trust.given()), now);
    let advised = advised.into_iter().map(|warning| (warning.object, warning.path, warning.message));
    let refused = refusals(&translation).into_iter().map(|(object, message)| (object, FieldPath::root(), message));
    let warnings: Vec<(ObjectRef, FieldPath, String)> = advised.chain(refused).collect();
    let fields: Vec<_> = warnings.iter().map(|(object, path, _)| (object, path)).collect();
    let places = source.locate(&fields);
    for ((object, path, message), place) in warnings.iter().zip(places) {
        let Some((file, line, column)) = place else { continue };
        problems.push(Diagnostic {
            file,
            line,
            column,
            object: object.to_string(),
            path: path.to_string(),
            message: message.clone(),
            severity: Severity::Warning,
        });
    }
    problems.sort();
    problems.dedup();
    Ok(ValidationReport { problems, objects: resources.len() })
}

/// Rejections in statuses that are no fault of a single manifest.
fn refusals(translation: &Translation) -> Vec<(ObjectRef, String)> {
    // Already reported as errors and warnings of the manifest, with a more precise place.
    const REPORTED: [&str; 3] = ["InvalidManifest", "ExtendedValidationFailed", "FieldsWithoutEffect"];
    let object = |kind: Kind, key: &ObjectKey| ObjectRef { kind, key: key.clone() };
    let mut refusals = Vec::new();
    for (key, entries) in translation.report.routes.entries() {
        for entry in entries.to_vec() {
            for condition in entry.conditions.iter().filter(|condition| !condition.message.is_empty()) {
                if REPORTED.contains(&&*condition.reason) {
                    continue;
                }
                let verb = if condition.holds { "admits it" } else { "refuses it" };
                let message =
                    format!("router {} {verb}: {}: {}", entry.router_name, condition.reason, condition.message);
                refusals.push((object(Kind::Route, key), message));
            }
        }
    }
    for (key, status) in &translation.report.ingress_controllers {
        let troubles = status.conditions.iter().filter(|condition| {
            !condition.message.is_empty() && condition.kind != "Available" && !REPORTED.contains(&&*condition.reason)
        });
        refusals.extend(troubles.map(|condition| {
            (object(Kind::IngressController, key), format!("{}: {}", condition.reason, condition.message))
        }));
    }
    for (object, told) in translation.report.others.entries() {
        let lost =
            |row: &&ParentStatus| !row.admitted || !row.winners.is_empty() || row.reason.starts_with("Partially");
        for row in told.rows.iter().filter(lost).filter(|row| !REPORTED.contains(&&*row.reason)) {
            let who = if row.parent.is_empty() { "Sluice" } else { &row.parent };
            let verb = match object.kind {
                Kind::TlsCertificateDelegation => "does not use it",
                _ if row.admitted => "serves it in part",
                _ => "does not serve it",
            };
            refusals.push((object.clone(), format!("{who} {verb}: {}: {}", row.reason, row.message)));
        }
        refusals.extend(faults(&told.status()).into_iter().map(|fault| (object.clone(), fault)));
    }
    refusals
}
