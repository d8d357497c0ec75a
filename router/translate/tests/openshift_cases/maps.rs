//! The maps of OpenShift's router, compared with the routing table for the same names and requests.

use std::sync::Arc;

use regex::Regex;
use router_model::names::{HostMatch, Hostname};
use router_table::lookup::{RequestMatch, SniMatch};
use router_table::table::{ResolvedRoute, RouterTable};
use serde_json::{Value, json};

use crate::differ;
use crate::world::{World, manifest, read};

/// A router that admits wildcards, and lets namespaces share hosts, with these routes.
fn router(routes: impl IntoIterator<Item = Value>) -> Arc<RouterTable> {
    let policy = json!({ "wildcardPolicy": "WildcardsAllowed", "namespaceOwnership": "InterNamespaceAllowed" });
    let mut world = World::new(&policy);
    routes.into_iter().for_each(|route| world.insert(route));
    world.router()
}

/// A route as a case describes it; `wildcard` sets the policy.
fn route(object: &Value, tls: &Value) -> Value {
    let wildcard = if object["wildcard"] == true { "Subdomain" } else { "None" };
    let path = object.get("path").cloned().unwrap_or_default();
    let host = object.get("host").cloned().unwrap_or_else(|| json!("h.test"));
    manifest(&json!({ "host": host, "path": path, "wildcardPolicy": wildcard, "tls": tls }))
}

fn served(router: &RouterTable) -> &Arc<ResolvedRoute> {
    router.routes.values().next().unwrap()
}

/// The name by which a route's certificate is found.
pub fn certificate_name(case: &Value, _: &[Value]) -> Vec<String> {
    let router = router([route(&case["objects"][0], &json!({ "termination": "edge" }))]);
    let name = served(&router).host.to_string();
    // OpenShift's router writes a wildcard without its star: the dot and the domain.
    differ("name", Some(name.trim_start_matches('*')), case["expect"]["certificate_selector_name"].as_str())
}

/// The prefix of a backend's name.
pub fn backend_prefix(case: &Value, _: &[Value]) -> Vec<String> {
    let router = router([route(&json!({}), &json!({ "termination": case["objects"][0]["termination"] }))]);
    differ("prefix", Some(&*prefix(served(&router))), case["expect"]["prefix"].as_str())
}

fn prefix(route: &ResolvedRoute) -> String {
    let name = route.backend_name();
    name.split(':').next().unwrap_or_default().to_owned()
}

/// If several entries match a request, the first in the order of OpenShift's map serves it.
pub fn precedence(case: &Value, _: &[Value]) -> Vec<String> {
    let wildcard = case["objects"]["wildcard_prefix"].as_str().unwrap();
    let list = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut entries: Vec<(String, String)> = Vec::new();
    for entry in list(&case["objects"]["entries"]) {
        let (pattern, backend) = entry.split_once(' ').unwrap();
        entries.push((pattern.to_owned(), backend.to_owned()));
    }
    let order = list(&case["expect"]["order_by_value"]);
    entries.sort_by_key(|(_, backend)| order.iter().position(|ordered| ordered == backend));
    assert_eq!(entries.len(), order.len());

    let mut requests = Vec::new();
    let routes = entries.iter().map(|(pattern, backend)| {
        let is_wildcard = pattern.starts_with(wildcard);
        let name = pattern.trim_start_matches(wildcard).trim_start_matches('^').replace("\\.", ".");
        let (name, path) = name.split_once("(:[0-9]+)?").unwrap_or((&name, ""));
        let path = path.trim_end_matches("(/.*)?$");
        let host = if is_wildcard { format!("any.{name}") } else { name.to_owned() };
        requests.push((host.clone(), if path.is_empty() { "/".to_owned() } else { path.to_owned() }));
        let (namespace, route) = id(backend);
        let policy = if is_wildcard { "Subdomain" } else { "None" };
        manifest(
            &json!({ "namespace": namespace, "name": route, "host": host, "path": path, "wildcardPolicy": policy }),
        )
    });
    let router = router(routes.collect::<Vec<_>>());
    let patterns: Vec<(Regex, &str)> =
        entries.iter().map(|(pattern, backend)| (Regex::new(pattern).unwrap(), &**backend)).collect();
    let mut differences = Vec::new();
    for (host, path) in requests {
        let request = format!("{host}{path}");
        let first = patterns.iter().find(|(pattern, _)| pattern.is_match(&request)).map(|(_, backend)| id(backend));
        let found = match router.match_cleartext_request(&Hostname::parse(&host).unwrap(), path.as_str()) {
            RequestMatch::Forward(route) => Some((&*route.id.namespace, &*route.id.name)),
            _ => None,
        };
        differences.extend(differ(request, found, first));
    }
    differences
}

/// Namespace and name of a backend such as `be_http:ns:name` or `ns:name`.
fn id(backend: &str) -> (&str, &str) {
    let (rest, name) = backend.rsplit_once(':').unwrap();
    (rest.rsplit(':').next().unwrap(), name)
}

/// For every termination and policy that a Route can have: the value of a map's entry, if there is one.
pub fn entries(case: &Value, _: &[Value]) -> Vec<String> {
    let (object, map) = (&case["objects"][0], case["expect"]["map"].as_str().unwrap());
    let mut differences = Vec::new();
    let mut admitted = 0;
    for termination in ["", "edge", "reencrypt", "passthrough"] {
        for policy in ["None", "Allow", "Redirect"] {
            let tls = match termination {
                // The original function also accepts policies for routes without TLS; a Route cannot have them.
                "" if policy != "None" => continue,
                "" => Value::Null,
                _ => json!({ "termination": termination, "insecureEdgeTerminationPolicy": policy }),
            };
            let manifest = route(object, &tls);
            // Passthrough Routes with a path or with policy Allow are invalid.
            let outcome = read(manifest.clone()).outcome;
            if !matches!(outcome, router_api::parse::ParseOutcome::Good(_)) {
                continue;
            }
            admitted += 1;
            let present = case["expect"]["present_for"].as_array().unwrap();
            let entry = present.iter().find(|entry| entry[0] == termination && entry[1] == policy);
            let says = entry.map(|entry| entry[2][1].as_str().unwrap().split(':').next().unwrap().to_owned());
            let found = fact(map, &router([manifest]), object);
            differences.extend(differ(format!("{map} {termination:?} {policy}"), found, says));
        }
    }
    assert!(admitted >= 5, "{map}: {admitted} kinds of routes");
    differences
}

/// The table's equivalent of a map's entry for the only route.
fn fact(map: &str, router: &RouterTable, object: &Value) -> Option<String> {
    let route = served(router);
    let host = match &route.host {
        HostMatch::Wildcard(domain) => Hostname::parse(&format!("any.{domain}")).unwrap(),
        HostMatch::Exact(name) => name.clone(),
        other => panic!("{other:?}"),
    };
    let path = object["path"].as_str().filter(|path| !path.is_empty()).unwrap_or("/");
    let backend = |found: RequestMatch<'_>| match found {
        RequestMatch::Forward(route) => Some(prefix(route)),
        _ => None,
    };
    let passed = match router.match_sni(Some(&host)) {
        SniMatch::Passthrough(route) => Some(route),
        _ => None,
    };
    let cleartext = router.match_cleartext_request(&host, path);
    match map {
        "os_wildcard_domain.map" => matches!(route.host, HostMatch::Wildcard(_)).then(|| "1".to_owned()),
        "os_http_be.map" => backend(cleartext),
        "os_edge_reencrypt_be.map" => backend(router.match_tls_request(&host, path)),
        "os_route_http_redirect.map" => {
            Some(if matches!(cleartext, RequestMatch::RedirectToHttps(_)) { "1" } else { "0" }.to_owned())
        }
        "os_tcp_be.map" => passed.map(|route| prefix(route)),
        "os_sni_passthrough.map" => passed.map(|_| "1".to_owned()),
        other => panic!("{other}"),
    }
}
