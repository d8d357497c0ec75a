//! The CustomResourceDefinitions of `deploy/crds`: an API server would accept them (structural schemas, as
//! `apiextensions.k8s.io/v1` requires), they accept and reject the same objects as Sluice's parser, and they contain
//! the status fields that Sluice writes, so that none is pruned. CEL rules are not evaluated here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use regex::Regex;
use router::cli::translate::objects;
use router::source::Directory;
use router_api::defaults::Defaults;
use router_api::parse::{ParseOutcome, parse};
use router_model::certificate::MaterialCache;
use router_model::object::Origin;
use router_translate::settings::Settings;
use router_translate::translate::translate;
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The YAML files of a folder and its subfolders, in order.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

/// All documents of the YAML files of a folder and its subfolders, in order.
fn documents(folder: &str) -> Vec<Value> {
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let parts: Vec<Value> = text
            .split("\n---\n")
            .map(|part| serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
            .collect();
        parts
    };
    files(folder).iter().flat_map(read).collect()
}

/// Schemas by `apiVersion` and `kind`.
fn schemas() -> BTreeMap<(String, String), Value> {
    let mut schemas = BTreeMap::new();
    for definition in documents("deploy/crds") {
        let spec = &definition["spec"];
        for version in spec["versions"].as_array().unwrap() {
            let api_version = format!("{}/{}", spec["group"].as_str().unwrap(), version["name"].as_str().unwrap());
            let kind = spec["names"]["kind"].as_str().unwrap().to_owned();
            schemas.insert((api_version, kind), version["schema"]["openAPIV3Schema"].clone());
        }
    }
    schemas
}

/// The faults of a schema that an API server would reject, each with its place.
fn faults_of_schema(schema: &Value, at: &str, faults: &mut Vec<String>) {
    const KNOWN: [&str; 20] = [
        "type",
        "nullable",
        "description",
        "properties",
        "required",
        "items",
        "enum",
        "default",
        "format",
        "pattern",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "additionalProperties",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
    ];
    let mut fault = |text: String| faults.push(format!("{at}: {text}"));
    let Some(members) = schema.as_object() else { return fault("is no schema".to_owned()) };
    for name in members.keys().filter(|name| !KNOWN.contains(&name.as_str()) && *name != "x-kubernetes-validations") {
        match name.as_str() {
            "x-kubernetes-preserve-unknown-fields" if members["type"] == "object" => {}
            "x-kubernetes-int-or-string" if !members.contains_key("type") => return,
            _ => fault(format!("{name} is not allowed")),
        }
    }
    for rule in members.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten() {
        if ["rule", "message"].iter().any(|name| rule[*name].as_str().is_none_or(|text| text.contains('\n'))) {
            fault("a rule needs a rule and a message of one line each".to_owned());
        }
    }
    if let Some(pattern) = members.get("pattern") {
        Regex::new(pattern.as_str().unwrap()).unwrap_or_else(|error| panic!("{at}: {error}"));
    }
    if let Some(default) = members.get("default") {
        let problems = problems(schema, default, "");
        if !problems.is_empty() {
            fault(format!("the default does not fit: {problems:?}"));
        }
    }
    let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "object" => {
            let properties = members.get("properties").and_then(Value::as_object);
            for name in members.get("required").and_then(Value::as_array).into_iter().flatten() {
                if properties.is_none_or(|known| !known.contains_key(name.as_str().unwrap())) {
                    fault(format!("required {name} is no property"));
                }
            }
            if properties.is_some() && members.contains_key("additionalProperties") {
                fault("has properties and additionalProperties".to_owned());
            }
            for (name, property) in properties.into_iter().flatten() {
                faults_of_schema(property, &format!("{at}.{name}"), faults);
            }
            if let Some(any) = members.get("additionalProperties") {
                faults_of_schema(any, &format!("{at}.*"), faults);
            }
        }
        "array" => {
            let items = &schema["items"];
            if members.get("x-kubernetes-list-type").is_some_and(|kind| kind == "map") {
                for key in schema["x-kubernetes-list-map-keys"].as_array().unwrap() {
                    let has_default = items["properties"][key.as_str().unwrap()].get("default").is_some();
                    let is_required = items["required"].as_array().is_some_and(|names| names.contains(key));
                    if !has_default && !is_required {
                        fault(format!("key {key} may be missing"));
                    }
                }
            } else if members.contains_key("x-kubernetes-list-map-keys") {
                fault("has keys and is no map".to_owned());
            }
            faults_of_schema(items, &format!("{at}[]"), faults);
        }
        "string" | "integer" | "boolean" => {}
        other => fault(format!("type {other:?}")),
    }
}

/// An API server's errors for a value, and the fields that it would prune.
fn problems(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |text: &str| found.push(format!("{at}: {text}"));
    let bound = |name: &str| schema[name].as_i64();
    match (schema["type"].as_str().unwrap_or_default(), value) {
        (_, Value::Null) if schema["nullable"] == json!(true) => return found,
        ("", Value::Number(_) | Value::String(_)) if schema["x-kubernetes-int-or-string"] == json!(true) => {}
        ("object", Value::Object(members)) => {
            for name in schema["required"].as_array().into_iter().flatten() {
                let has_default = schema["properties"][name.as_str().unwrap()].get("default").is_some();
                if !members.contains_key(name.as_str().unwrap()) && !has_default {
                    say(&format!("{name} is missing"));
                }
            }
            // The schema does not describe `metadata`, which is kept.
            let is_open = schema["properties"].is_null() && schema["additionalProperties"].is_null();
            for (name, member) in members {
                let property = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
                match property {
                    Some(property) => found.extend(problems(property, member, &format!("{at}.{name}"))),
                    None if is_open => {}
                    None => found.push(format!("{at}.{name}: is pruned")),
                }
            }
        }
        ("array", Value::Array(items)) => {
            let count = i64::try_from(items.len()).unwrap();
            if bound("minItems").is_some_and(|least| count < least)
                || bound("maxItems").is_some_and(|most| count > most)
            {
                say("has too few or too many items");
            }
            for (i, item) in items.iter().enumerate() {
                found.extend(problems(&schema["items"], item, &format!("{at}[{i}]")));
            }
        }
        ("string", Value::String(text)) => {
            let length = i64::try_from(text.chars().count()).unwrap();
            if bound("minLength").is_some_and(|least| length < least)
                || bound("maxLength").is_some_and(|most| length > most)
            {
                say("is too short or too long");
            }
            if schema["pattern"].as_str().is_some_and(|pattern| !Regex::new(pattern).unwrap().is_match(text)) {
                say("is not like the pattern");
            }
        }
        ("integer", Value::Number(number)) if number.is_i64() => {
            let number = number.as_i64().unwrap();
            if bound("minimum").is_some_and(|least| number < least)
                || bound("maximum").is_some_and(|most| number > most)
            {
                say("is too small or too large");
            }
        }
        ("boolean", Value::Bool(_)) => {}
        (kind, _) => say(&format!("is no {kind}")),
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        found.push(format!("{at}: is none of the words"));
    }
    found
}

/// The problems of an object under the schema of its kind; `None` if there is no schema.
fn problems_of(schemas: &BTreeMap<(String, String), Value>, object: &Value) -> Option<Vec<String>> {
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let schema = schemas.get(&(text("apiVersion"), text("kind")))?;
    Some(problems(schema, object, ""))
}

#[test]
fn definitions_are_structural_and_named_as_they_must_be() {
    let definitions = documents("deploy/crds");
    assert_eq!(definitions.len(), 5);
    for definition in definitions {
        let (spec, names) = (&definition["spec"], &definition["spec"]["names"]);
        let full = format!("{}.{}", names["plural"].as_str().unwrap(), spec["group"].as_str().unwrap());
        assert_eq!(definition["metadata"]["name"], json!(full));
        assert_eq!(names["listKind"], json!(format!("{}List", names["kind"].as_str().unwrap())));
        assert_eq!(names["singular"], json!(names["kind"].as_str().unwrap().to_lowercase()));
        let versions = spec["versions"].as_array().unwrap();
        assert_eq!(versions.iter().filter(|version| version["storage"] == json!(true)).count(), 1);
        let mut faults = Vec::new();
        for version in versions {
            assert_eq!(version["subresources"], json!({ "status": {} }), "{full}");
            faults_of_schema(&version["schema"]["openAPIV3Schema"], "", &mut faults);
        }
        assert_eq!(faults, Vec::<String>::new(), "{full}");
    }
}

#[test]
fn the_overlay_says_which_bundle_it_belongs_to_and_has_the_fields_of_inclusion() {
    let overlay = documents("deploy/crds/overlay").swap_remove(0);
    let annotations = &overlay["metadata"]["annotations"];
    assert_eq!(annotations["gateway.networking.k8s.io/bundle-version"], "v1.6.1");
    assert_eq!(annotations["gateway.networking.k8s.io/channel"], "standard");
    let text =
        fs::read_to_string(root().join("deploy/crds/overlay/gateway.networking.k8s.io_httproutes.yaml")).unwrap();
    assert!(text.starts_with("# OPT-IN.") && text.contains("A LATER `kubectl apply` OF THE UPSTREAM CRDs"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("overlay.yaml"), text).unwrap();
    let (_, snapshot) = Directory::open(folder.path(), Defaults::default()).unwrap();
    let definitions: Vec<bool> = snapshot.resources.definitions.iter().map(|it| it.has_inclusions).collect();
    assert_eq!(definitions, [true]);
}

#[test]
fn all_definitions_are_printed() {
    let printed: Vec<Value> =
        router::cli::crds::text().split("\n---\n").map(|part| serde_saphyr::from_str(part).unwrap()).collect();
    let overlay = documents("deploy/crds/overlay");
    let mut expected = documents("deploy/crds");
    expected.retain(|definition| !overlay.contains(definition));
    assert_eq!(printed, expected);
}

#[test]
fn the_examples_are_good_for_schemas_and_for_sluice() {
    let schemas = schemas();
    for folder in ["examples/quickstart", "examples/delegation", "examples/delegation-overlay"] {
        let mut checked = 0;
        for object in documents(folder) {
            if let Some(problems) = problems_of(&schemas, &object) {
                assert_eq!(problems, Vec::<String>::new(), "{object}");
                checked += 1;
            }
            let parsed = parse(object.clone(), Origin::default(), &Defaults::default(), &mut MaterialCache::new());
            let warnings: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
            assert_eq!(warnings, Vec::<String>::new(), "{object}");
            assert!(matches!(parsed.outcome, ParseOutcome::Good(_)), "{object} {:?}", parsed.outcome);
        }
        assert!(checked >= 2, "{folder}");
    }
}

#[test]
fn what_sluice_accepts_the_schemas_accept() {
    let schemas = schemas();
    let mut checked = BTreeMap::<String, usize>::new();
    let mut found = Vec::new();
    for file in files("router/tests/manifests") {
        let text = fs::read_to_string(&file).unwrap();
        // Some documents are no YAML, on purpose.
        for object in text.split("\n---\n").filter_map(|part| serde_saphyr::from_str::<Value>(part).ok()) {
            // HTTPRoute's definition is that of the standard channel.
            let problems = problems_of(&schemas, &object).filter(|_| object["kind"] != "HTTPRoute");
            let Some(mut problems) = problems else { continue };
            let parsed = parse(object.clone(), Origin::default(), &Defaults::default(), &mut MaterialCache::new());
            if !matches!(parsed.outcome, ParseOutcome::Good(_)) {
                continue;
            }
            // An unknown field has a warning, and is pruned.
            let unknown = |problem: &String| problem.ends_with(": is pruned") && !parsed.warnings.is_empty();
            problems.retain(|problem| !unknown(problem));
            found.extend(problems.iter().map(|problem| format!("{}: {problem}: {object}", file.display())));
            *checked.entry(object["kind"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    assert_eq!(found, Vec::<String>::new());
    let kinds: Vec<&str> = checked.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["IngressController", "IngressRoute", "Route", "RouteSlot"], "{checked:?}");
    assert!(checked["Route"] >= 20 && checked["IngressController"] >= 5, "{checked:?}");
}

#[test]
fn statuses_are_in_the_schemas() {
    let schemas = schemas();
    let now: Timestamp = "2024-05-01T12:00:00Z".parse().unwrap();
    let mut with_status = BTreeMap::<String, usize>::new();
    for folder in ["examples/quickstart", "examples/delegation", "examples/delegation-overlay"] {
        let place = tempfile::tempdir().unwrap();
        let all = documents(folder).into_iter().chain(documents("deploy/crds/overlay"));
        for (i, object) in all.enumerate() {
            fs::write(place.path().join(format!("{i}.json")), object.to_string()).unwrap();
        }
        let (_, snapshot) = Directory::open(place.path(), Defaults::default()).unwrap();
        let report = translate(&snapshot.resources, &Settings::default()).report;
        for object in objects(&snapshot.resources, &report, now)["objects"].as_array().unwrap() {
            let Some(problems) = problems_of(&schemas, object) else { continue };
            assert_eq!(problems, Vec::<String>::new(), "{object}");
            if object.get("status").is_some() {
                *with_status.entry(object["kind"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
    }
    let kinds: Vec<&str> = with_status.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["HTTPRoute", "IngressController", "IngressRoute", "Route", "RouteSlot"]);
    assert!(with_status["HTTPRoute"] >= 4 && with_status["IngressRoute"] >= 2, "{with_status:?}");
}

#[test]
fn what_the_schemas_refuse_is_refused_by_sluice_too() {
    let schemas = schemas();
    let rule = |rule: Value| ("gateway.networking.k8s.io/v1", "HTTPRoute", json!({ "rules": [rule] }));
    let slot = |spec: Value| ("gateway.sluice.dev/v1alpha1", "RouteSlot", spec);
    let route = |spec: Value| ("route.openshift.io/v1", "Route", spec);
    let controller = |spec: Value| ("operator.openshift.io/v1", "IngressController", spec);
    let table = [
        rule(json!({ "name": "A" })),
        rule(json!({ "matches": [{ "method": "get" }] })),
        rule(json!({ "matches": [{ "path": { "type": "Prefix" } }] })),
        rule(json!({ "matches": [{ "headers": [{ "name": "a b", "value": "c" }] }] })),
        rule(json!({ "filters": [{}] })),
        rule(json!({ "filters": [{ "type": "RequestRedirect", "requestRedirect": { "statusCode": 304 } }] })),
        rule(json!({ "filters": [{ "type": "CORS", "cors": { "allowOrigins": ["a.test"] } }] })),
        rule(json!({ "backendRefs": [{ "port": 80 }] })),
        rule(json!({ "backendRefs": [{ "name": "a", "port": 0 }] })),
        rule(json!({ "timeouts": { "request": "10" } })),
        rule(json!({ "allowedRoutes": { "namespaces": { "from": "Some" } } })),
        ("gateway.networking.k8s.io/v1", "HTTPRoute", json!({ "hostnames": ["A.test"] })),
        ("gateway.networking.k8s.io/v1", "HTTPRoute", json!({ "parentRefs": [{ "kind": "Gateway" }] })),
        route(json!({ "host": "a.test" })),
        route(json!({ "to": { "name": "a", "weight": 257 } })),
        route(json!({ "to": { "kind": "Secret", "name": "a" } })),
        route(json!({ "to": { "name": "a" }, "path": "a" })),
        route(json!({ "to": { "name": "a" }, "wildcardPolicy": "All" })),
        route(json!({ "to": { "name": "a" }, "tls": { "termination": "both" } })),
        route(json!({ "to": { "name": "a" }, "tls": { "insecureEdgeTerminationPolicy": "Deny" } })),
        route(json!({ "to": { "name": "a" }, "port": {} })),
        controller(json!({ "routeAdmission": { "wildcardPolicy": "Some" } })),
        controller(json!({ "endpointPublishingStrategy": { "type": "Public" } })),
        controller(json!({ "httpHeaders": { "forwardedHeaderPolicy": "Always" } })),
        controller(json!({ "tuningOptions": { "headerBufferBytes": 1000 } })),
        controller(json!({ "tlsSecurityProfile": { "type": "New" } })),
        slot(json!({ "allowedRoutes": { "kinds": [{ "group": "a" }] } })),
        slot(json!({ "allowedRoutes": { "namespaces": { "from": "Any" } } })),
        slot(json!({ "allowedRoutes": { "namespaces": { "selector": { "matchExpressions": [{ "key": "a" }] } } } })),
    ];
    for (api_version, kind, spec) in table {
        let metadata = json!({ "namespace": "a", "name": "b" });
        let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec });
        assert!(!problems_of(&schemas, &object).unwrap().is_empty(), "{object}");
        let outcome = parse(object.clone(), Origin::default(), &Defaults::default(), &mut MaterialCache::new()).outcome;
        assert!(matches!(outcome, ParseOutcome::Refused { .. }), "{object}");
    }
}
