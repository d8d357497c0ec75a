//! How a route's traffic is forwarded: weights, allow-lists, timeouts, rewrites, and destinations.

use std::collections::BTreeMap;
use std::sync::Arc;

use router_model::names::Hostname;
use router_table::lookup::{RequestMatch, SniMatch};
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::policy::rewrite::RewriteTarget;
use router_table::table::{ResolvedRoute, RouterTable};
use serde_json::{Value, json};

use crate::differ;
use crate::world::{World, manifest};

const PREFIX: &str = "haproxy.router.openshift.io";

/// The router of a world with these objects.
fn world(objects: impl IntoIterator<Item = Value>) -> World {
    let mut world = World::new(&json!({ "wildcardPolicy": "WildcardsAllowed" }));
    objects.into_iter().for_each(|object| world.insert(object));
    world
}

fn router(objects: impl IntoIterator<Item = Value>) -> Arc<RouterTable> {
    world(objects).router()
}

/// The one route with these annotations.
fn annotated(tls: &Value, annotations: &Value) -> Arc<ResolvedRoute> {
    let flat = json!({ "host": "h.test", "tls": tls, "annotations": annotations });
    Arc::clone(router([manifest(&flat)]).routes.values().next().unwrap())
}

/// The share of every endpoint of a service.
pub fn service_weights(case: &Value, _: &[Value]) -> Vec<String> {
    let name = |service: &str| service.trim_start_matches("ns/").to_owned();
    let weights = case["objects"]["weights"].as_object().unwrap();
    let mut backends: Vec<Value> =
        weights.iter().map(|(service, weight)| json!({ "name": name(service), "weight": weight })).collect();
    let mut flat = json!({ "host": "h.test", "to": backends.remove(0), "alternateBackends": backends });
    if case["policy"]["targetPort"] != "" {
        flat["port"] = json!({ "targetPort": case["policy"]["targetPort"] });
    }
    let mut objects = vec![manifest(&flat)];
    for (number, (service, endpoints)) in case["objects"]["endpoints"].as_object().unwrap().iter().enumerate() {
        for (i, endpoint) in endpoints.as_array().unwrap().iter().enumerate() {
            let port: u16 = endpoint["port"].as_str().unwrap().parse().unwrap();
            objects.push(json!({
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "namespace": "ns",
                    "name": format!("{}-{i}", name(service)),
                    "labels": { "kubernetes.io/service-name": name(service) },
                },
                "addressType": "IPv4",
                "endpoints": [{ "addresses": [format!("10.0.{number}.{}", i + 1)] }],
                "ports": [{ "name": endpoint["portName"], "port": port }],
            }));
        }
    }
    let world = world(objects);
    let (router, endpoints) = (world.router(), world.endpoints());
    let cluster = &router.routes.values().next().unwrap().cluster;
    let shares = cluster.services.iter().zip(cluster.endpoint_weights(endpoints));
    let found: BTreeMap<String, u64> = shares
        .filter(|(service, _)| !endpoints.of(service).is_empty())
        .map(|(service, weight)| (format!("ns/{}", service.service), weight.into()))
        .collect();
    let expected = case["expect"]["per_endpoint_weight"].as_object().unwrap();
    differ("weights", found, expected.iter().map(|(name, weight)| (name.clone(), weight.as_u64().unwrap())).collect())
}

/// The networks that an allow-list admits, one by one.
pub fn ip_allowlist(case: &Value, _: &[Value]) -> Vec<String> {
    let list = |text: &Value| {
        annotated(&Value::Null, &json!({ format!("{PREFIX}/ip_allowlist"): text })).allow().map(<[_]>::to_vec)
    };
    let (expect, found) = (&case["expect"], list(&case["objects"][0]["value"]).unwrap());
    let mut differences = differ("enforced", Some(!found.is_empty()), expect["enforced"].as_bool());
    if let Some(entries) = expect["entries"].as_u64() {
        differences.extend(differ("entries", found.len() as u64, entries));
    } else {
        differences.extend(differ("networks", found, list(&expect["effective"]).unwrap()));
    }
    differences
}

/// The duration that a value denotes, as in HAProxy's configuration.
pub fn timeout_values(case: &Value, _: &[Value]) -> Vec<String> {
    let read =
        |text: &Value| annotated(&Value::Null, &json!({ format!("{PREFIX}/timeout"): text })).policy.server_timeout;
    differ("timeout", read(&case["objects"][0]["value"]), read(&case["expect"]["effective"]))
}

/// The forwarded path; or the effect of a value, which is prefixed with a slash to make it a path.
pub fn rewrite_target(case: &Value, _: &[Value]) -> Vec<String> {
    let object = &case["objects"][0];
    if let Some(target) = object["rewrite_target"].as_str() {
        let target = RewriteTarget::parse(target).unwrap();
        let path = target.rewrite(object["route_path"].as_str().unwrap(), object["request_path"].as_str().unwrap());
        return differ("path", Some(path.as_str()), case["expect"]["backend_path"].as_str());
    }
    let replacement = case["expect"]["replacement"].as_str().unwrap();
    // In HAProxy, `\1` is the rest of the path, and `%%` is a percent sign.
    let (text, rest) = replacement.strip_suffix("\\1").map_or((replacement, ""), |text| (text, "/rest"));
    let expected = format!("/{}{rest}", text.replace("%%", "%").trim_end());
    let found = RewriteTarget::parse(&format!("/{}", object["value"].as_str().unwrap()));
    differ("path", found.map(|target| target.rewrite("/old", "/old/rest")), Ok(expected))
}

/// The value of `Strict-Transport-Security`.
pub fn hsts(case: &Value, _: &[Value]) -> Vec<String> {
    let object = &case["objects"][0];
    let found = annotated(&object["tls"], &object["annotations"]).policy.hsts.clone();
    differ("value", found.as_deref(), case["expect"]["header_value"].as_str())
}

/// When the router adds its forwarding headers to a request.
pub fn forwarded_headers(case: &Value, _: &[Value]) -> Vec<String> {
    let found = match annotated(&Value::Null, &case["objects"][0]["annotations"]).forwarded {
        ForwardedHeaders::IfNone => "only if request has no Forwarded header",
        _ => "another",
    };
    differ("mode", Some(found), case["expect"]["mode"].as_str())
}

/// True if an endpoint speaks HTTP/2 in clear text.
pub fn app_protocol(case: &Value, _: &[Value]) -> Vec<String> {
    let mut port = case["objects"][0]["endpointPort"].clone();
    port["port"] = json!(8080);
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": { "namespace": "ns", "name": "web", "labels": { "kubernetes.io/service-name": "web" } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.0.0.1"] }],
        "ports": [port],
    });
    let world = world([manifest(&json!({ "host": "h.test", "tls": case["objects"][0]["tls"] })), slice]);
    let router = world.router();
    let route = router.routes.values().next().unwrap();
    let h2c = world.endpoints().of(&route.cluster.services[0])[0].h2c;
    differ("h2c", Some(h2c), case["expect"]["upstream_cleartext_http2"].as_bool())
}

/// Host and path of `host[:port][/path]`; the port does not take part in matching.
fn split(request: &str) -> (Hostname, &str) {
    let (host, path) = request.find('/').map_or((request, "/"), |at| request.split_at(at));
    (Hostname::parse(host.split(':').next().unwrap()).unwrap(), path)
}

/// Requests that a route matches, and requests that it does not.
pub fn request_match(case: &Value, _: &[Value]) -> Vec<String> {
    let object = &case["objects"][0];
    let policy = if object["wildcard"] == true { "Subdomain" } else { "None" };
    let router =
        router([manifest(&json!({ "host": object["host"], "path": object["path"], "wildcardPolicy": policy }))]);
    let matches = |request: &Value| {
        let (host, path) = split(request.as_str().unwrap());
        matches!(router.match_cleartext_request(&host, path), RequestMatch::Forward(_))
    };
    [("match", true), ("nomatch", false)]
        .into_iter()
        .flat_map(|(list, expected)| {
            case["expect"][list].as_array().unwrap().iter().map(move |request| (request, expected))
        })
        .flat_map(|(request, expected)| differ(request, matches(request), expected))
        .collect()
}

/// The route that gets each request of a list, or the response.
pub fn request_routing(case: &Value, _: &[Value]) -> Vec<String> {
    let router = router(case["objects"].as_array().unwrap().iter().map(manifest));
    let mut differences = Vec::new();
    for step in case["steps"].as_array().unwrap() {
        let request = &step["request"];
        let text = |member: &str| request[member].as_str().unwrap();
        // The proxy parses a host with a port and separates the two.
        let (host, target) = (text("host").split(':').next().unwrap(), text("path"));
        let path = target.split('?').next().unwrap();
        let answer = |found: RequestMatch<'_>| match found {
            RequestMatch::Forward(route) => json!({ "backend": route.id.to_string() }),
            RequestMatch::RedirectToHttps(_) => {
                json!({ "redirect": 302, "location": format!("https://{host}{target}") })
            }
            RequestMatch::NoRoute => json!({ "status": 503 }),
            RequestMatch::PassedThrough => json!({ "status": 421 }),
            RequestMatch::Rule(_) | RequestMatch::Closed => panic!("there are only Routes"),
        };
        let found = match Hostname::parse(host) {
            Err(_) => json!({ "status": 400 }),
            Ok(host) if request["scheme"] == "http" => answer(router.match_cleartext_request(&host, path)),
            Ok(host) => match router.match_sni(Some(&Hostname::parse(text("sni")).unwrap())) {
                SniMatch::Passthrough(route) => json!({ "tcp_backend": route.id.to_string() }),
                _ => answer(router.match_tls_request(&host, path)),
            },
        };
        differences.extend(differ(request, &found, &step["expect"]));
    }
    differences
}
