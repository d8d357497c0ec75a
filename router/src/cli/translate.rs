//! `sluice translate DIR`: every object that gets a status, as the API server would store it. Needs no cluster, no
//! kernel and no running agent.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use jiff::Timestamp;
use router_api::defaults::Defaults;
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::object::{Manifest, ObjectKey, ObjectRef};
use router_translate::explain::{gate, settings};
use router_translate::settings::Settings;
use router_translate::status::condition::Condition;
use router_translate::status::object_status::ParentStatus;
use router_translate::status::report::StatusReport;
use router_translate::translate::{Translation, translate};
use serde_json::{Value, json};

use crate::source::{Source, SourceOptions};

/// `-o`: format of the objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum TranslateFormat {
    /// One JSON object, `{"objects": […]}`.
    #[default]
    Json,
    /// The same as YAML.
    Yaml,
    /// A few lines of text for each object.
    Text,
}

/// Prints the translation of a source to stdout, and its problems to stderr. `now` becomes the time of new conditions.
///
/// # Errors
/// The source cannot be read, or stdout cannot be written.
pub fn run(
    source: &SourceOptions,
    settings: &Settings,
    format: TranslateFormat,
    now: Timestamp,
) -> anyhow::Result<ExitCode> {
    let defaults = Defaults { cluster_domain: settings.cluster_domain.clone() };
    let (_, snapshot) = Source::read(source, defaults)?;
    for problem in snapshot.diagnostics.iter() {
        eprintln!("{}", source.display(problem));
    }
    let translation = translate(&snapshot.resources, settings);
    let report = &translation.report;
    let text = match format {
        TranslateFormat::Text => text(&translation),
        TranslateFormat::Json => {
            let mut text = serde_json::to_string_pretty(&objects(&snapshot.resources, report, now))?;
            text.push('\n');
            text
        }
        TranslateFormat::Yaml => serde_saphyr::to_string(&objects(&snapshot.resources, report, now))?,
    };
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot write to stdout")?;
    Ok(ExitCode::SUCCESS)
}

/// `{"objects": […]}`: IngressControllers, then Routes, then other kinds, each in order of namespace and name, without
/// key material.
pub fn objects(resources: &Resources, report: &StatusReport, now: Timestamp) -> Value {
    let reference = |kind, key: &ObjectKey| ObjectRef { kind, key: key.clone() };
    let controllers = report.ingress_controllers.keys().map(|key| reference(Kind::IngressController, key));
    let routes = report.routes.entries().map(|(key, _)| reference(Kind::Route, key));
    let others = report.others.entries().map(|(object, _)| object.clone());
    let object = |object: ObjectRef| {
        let manifest = resources.manifest(object.kind, &object.key)?;
        let before = manifest.status();
        let status = report.merged(&object, before.as_ref(), before.as_ref(), now)?;
        Some(with_status(manifest, status))
    };
    let objects: Vec<Value> = controllers.chain(routes).chain(others).filter_map(object).collect();
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

/// A paragraph for each object, with the non-default settings of its routes.
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
    for router in table.routers.iter().filter(|router| router.policy.gate.is_some()) {
        text.push_str(&format!("Gate of router {}\n", router.name));
        gate::rules(router).iter().for_each(|rule| text.push_str(&format!("  {rule}\n")));
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
            for setting in settings.iter().filter(|setting| setting.non_default) {
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

/// Whether an object is served for a row's parent, and why not.
fn row_words(row: &ParentStatus) -> String {
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
