//! The test plans of the three designs that Sluice's admission implements, each item with the design's own objects:
//! manifests as input, statuses as `sluice translate` prints them as output.
//!
//! IngressControllers of one agent need ports of their own, which OpenShift's do not; the manifests here add them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod admission_policy;
mod subdomain;
mod wildcard_policy;

use std::fs;

use jiff::Timestamp;
use router::cli::translate::objects;
use router::source::Directory;
use router_api::defaults::Defaults;
use router_translate::settings::Settings;
use router_translate::translate::translate;
use serde_json::Value;
use tempfile::TempDir;

/// The domain of the cluster in all three designs.
const CLUSTER_DOMAIN: &str = "apps.mycluster.com";

/// The objects of these documents with their statuses, as the API server would store them.
struct Cluster(Vec<Value>);

impl Cluster {
    /// Translates documents, which must be without errors.
    fn of(documents: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("objects.yaml"), documents.join("\n---\n")).unwrap();
        let defaults = Defaults { cluster_domain: CLUSTER_DOMAIN.to_owned() };
        let (_, snapshot) = Directory::open(folder.path(), defaults).unwrap();
        assert!(snapshot.diagnostics.iter().all(|d| d.path == "spec.subdomain"), "{:?}", snapshot.diagnostics);
        let settings = Settings { cluster_domain: CLUSTER_DOMAIN.to_owned(), ..Settings::default() };
        let report = translate(&snapshot.resources, &settings).report;
        let all = objects(&snapshot.resources, &report, Timestamp::UNIX_EPOCH);
        Cluster(all["objects"].as_array().unwrap().clone())
    }

    fn object(&self, kind: &str, namespace: &str, name: &str) -> &Value {
        self.0
            .iter()
            .find(|o| o["kind"] == kind && o["metadata"]["namespace"] == namespace && o["metadata"]["name"] == name)
            .unwrap_or_else(|| panic!("no {kind} {namespace}/{name}"))
    }

    /// `spec` of a Route.
    fn spec(&self, namespace: &str, name: &str) -> &Value {
        &self.object("Route", namespace, name)["spec"]
    }

    /// `status` of an IngressController.
    fn controller(&self, name: &str) -> &Value {
        &self.object("IngressController", "openshift-ingress-operator", name)["status"]
    }

    /// `status.ingress[]` of a Route: router, canonical host name of the router, host, `admitted` or reason and message.
    fn ingress(&self, namespace: &str, name: &str) -> Vec<[String; 4]> {
        let entries = self.object("Route", namespace, name)["status"]["ingress"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        entries
            .iter()
            .map(|entry| {
                let condition = &entry["conditions"][0];
                assert_eq!(condition["type"], "Admitted");
                let outcome = match text(&condition["status"]).as_str() {
                    "True" => "admitted".to_owned(),
                    _ => format!("{}: {}", text(&condition["reason"]), text(&condition["message"])),
                };
                [text(&entry["routerName"]), text(&entry["routerCanonicalHostname"]), text(&entry["host"]), outcome]
            })
            .collect()
    }

    /// The result for a Route on the only router that selects it.
    fn outcome(&self, namespace: &str, name: &str) -> String {
        let entries = self.ingress(namespace, name);
        let [[.., outcome]] = entries.as_slice() else { panic!("{namespace}/{name} has {entries:?}") };
        outcome.clone()
    }
}
