//! `sluice translate DIR`: every object that gets a status, as the API server would store it. Needs no cluster, no
//! kernel and no running agent.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use jiff::Timestamp;
use router_api::defaults::Defaults;
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::Manifest;
use router_translate::explain::settings;
use router_translate::settings::Settings;
use router_translate::status::condition::Condition;
use router_translate::status::merge::{merge_controller, merge_route};
use router_translate::status::object_status::Row;
use router_translate::status::others::merge_other;
use router_translate::status::report::StatusReport;
use router_translate::translate::{Translation, translate};
use serde_json::{Value, json};

use crate::source::{Directory, folder_of};

/// `-o`: how the objects are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One JSON object, `{"objects": […]}`.
    #[default]
    Json,
    /// The same as YAML.
    Yaml,
    /// A few lines for each object, for people.
    Text,
}

/// Prints the translation of a folder to stdout, and what is wrong with the folder to stderr. `now` becomes the time
/// of conditions that are new.
///
/// # Errors
/// The folder cannot be read, or stdout cannot be written.
pub fn run(folder: &Path, settings: &Settings, format: Format, now: Timestamp) -> anyhow::Result<ExitCode> {
    let defaults = Defaults { cluster_domain: settings.cluster_domain.clone() };
    let (_, snapshot) = Directory::open(folder, defaults)?;
    let (shown, _) = folder_of(folder);
    for problem in snapshot.diagnostics.iter() {
        eprintln!("{}", problem.display_in(shown));
    }
    let translation = translate(&snapshot.resources, settings);
    let report = &translation.report;
    let text = match format {
        Format::Text => text(&translation),
        Format::Json => {
            let mut text = serde_json::to_string_pretty(&objects(&snapshot.resources, report, now))?;
            text.push('\n');
            text
        }
        Format::Yaml => serde_saphyr::to_string(&objects(&snapshot.resources, report, now))?,
    };
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot write to stdout")?;
    Ok(ExitCode::SUCCESS)
}

/// `{"objects": […]}`: IngressControllers, then Routes, then objects of other kinds, each in order of namespace and
/// name, without key material.
pub fn objects(resources: &Resources, report: &StatusReport, now: Timestamp) -> Value {
    let mut objects = Vec::new();
    for (key, status) in &report.ingress_controllers {
        let Some(manifest) = resources.manifest(Kind::IngressController, key) else { continue };
        objects.push(with_status(manifest, merge_controller(manifest.status().as_ref(), status, now).status));
    }
    let is_ours = |name: &str| report.routers.iter().any(|router| &*router.0 == name);
    for (key, entries) in report.routes.entries() {
        let Some(manifest) = resources.manifest(Kind::Route, key) else { continue };
        objects.push(with_status(
            manifest,
            merge_route(manifest.status().as_ref(), &entries.to_vec(), &is_ours, now).status,
        ));
    }
    for (object, told) in report.others.entries() {
        let Some(manifest) = resources.manifest(object.kind, &object.key) else { continue };
        let status = manifest.status();
        objects.push(with_status(manifest, merge_other(status.as_ref(), status.as_ref(), &told.status, now).status));
    }
    json!({ "objects": objects })
}

fn with_status(manifest: &Manifest, status: Value) -> Value {
    let mut object = manifest.redacted();
    if let Some(members) = object.as_object_mut() {
        members.shift_remove("status");
        members.insert("status".to_owned(), status);
    }
    object
}

/// A paragraph for each object, with the settings of routes that somebody asks for.
pub fn text(translation: &Translation) -> String {
    let Translation { table, report, .. } = translation;
    let mut text = String::new();
    for (key, status) in &report.ingress_controllers {
        text.push_str(&format!("IngressController {key}"));
        if let Some((http, https)) = status.ports {
            text.push_str(&format!(": domain {}, ports {http} and {https}", status.domain));
        }
        text.push('\n');
        status.conditions.iter().for_each(|condition| text.push_str(&format!("  {}\n", words(condition))));
    }
    for (key, entries) in report.routes.entries() {
        text.push_str(&format!("Route {key}\n"));
        if entries.is_empty() {
            text.push_str("  no router selects it\n");
        }
        for entry in entries.to_vec() {
            let host = if entry.host.is_empty() { "(no host)" } else { &entry.host };
            let is_wildcard = entry.wildcard_policy == "Subdomain" && !entry.host.is_empty();
            let wildcard = if is_wildcard { " and its siblings" } else { "" };
            text.push_str(&format!("  router {}: {host}{wildcard}\n", entry.router_name));
            entry.conditions.iter().for_each(|condition| text.push_str(&format!("    {}\n", words(condition))));
            let router = table.router(&entry.router_name);
            let served = router.and_then(|router| Some((router, router.routes.get(&key.route_id())?)));
            let settings = served.map(|(router, route)| settings::settings(&table.endpoints, router, route));
            let settings = settings.unwrap_or_default();
            for setting in settings.iter().filter(|setting| setting.asked) {
                text.push_str(&format!("    {}: {}\n", setting.what, setting.value));
            }
        }
    }
    for (object, told) in report.others.entries() {
        text.push_str(&format!("{object}\n"));
        for row in &told.rows {
            if row.parent.is_empty() {
                text.push_str(&format!("  {}\n", row_words(row)));
                continue;
            }
            let hosts = if row.hosts.is_empty() { String::new() } else { format!(": {}", row.hosts.join(" ")) };
            text.push_str(&format!("  {}{hosts}\n    {}\n", row.parent, row_words(row)));
        }
    }
    text
}

/// Whether an object is served where a row says, and why not.
fn row_words(row: &Row) -> String {
    let admitted = if row.admitted { "served" } else { "not served" };
    let parts = [admitted, &row.reason, &row.message].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(": ")
}

fn words(condition: &Condition) -> String {
    let mut words = format!("{} {}", condition.kind, condition.status());
    for part in [&condition.reason, &condition.message] {
        if !part.is_empty() {
            words.push_str(": ");
            words.push_str(part);
        }
    }
    words
}
