//! Combined filters and time-outs of all levels on a path.

use std::thread;

use anyhow::Context;
use serde_json::Value;
use tests::process::Process;
use tests::python;

use super::manifests::{WEB, own, prefix, route, to_slot, under};
use super::*;

/// Filters as a member of a rule.
fn filters(filters: &[&str]) -> String {
    format!(", filters: [{}]", filters.join(", "))
}

/// `RequestHeaderModifier` or `ResponseHeaderModifier` with this change of `x-order`.
fn modifier(kind: &str, change: &str) -> String {
    let member = format!("{}{}", kind[..1].to_ascii_lowercase(), &kind[1..]);
    let (verb, value) = change.split_once(' ').unwrap_or((change, ""));
    let list = if verb == "remove" { "[x-order]".to_owned() } else { format!("[{{name: x-order, value: {value}}}]") };
    filters(&[&format!("{{type: {kind}, {member}: {{{verb}: {list}}}}}")])
}

/// A root with a slot, a middle with a slot, and a leaf, on the host `CASE.t.test`; their rules have these members.
fn three(case: &str, [top, middle, leaf]: [&str; 3]) -> String {
    let [first, second] = [format!("shop/{case}"), format!("red/{case}-middle")];
    route(&first, WEB, &format!("{case}.t.test"), &[to_slot("s", "all", "", top)])
        + &route(&second, &under(&first), "", &[to_slot("s", "all", "", middle)])
        + &route(&format!("red/{case}-leaf"), &under(&second), "", &[own("", leaf)])
}

/// Replaces nginx for `red`: a server that reports requests and responds on command.
fn origin(stage: &Stage) -> Result<Process> {
    let folder = stage.manifests.path().to_str().context("a path")?;
    python::server(&stage.netns, "origin", &["9010", folder])
}

/// The Service of `red` with that server as endpoint.
fn red_is_the_origin(text: &str) -> String {
    let changed = text.replace("name: web, port: 80}", "name: origin, port: 80}");
    changed + &service("red", "origin", 9010)
}

#[test]
fn fields_are_changed_from_the_listener_down() -> Result<()> {
    // Operations of root, middle and leaf on a field, and the result.
    let cases = [
        ("adds", ["add top", "add middle", "add leaf"], "top, middle, leaf"),
        ("sets", ["set top", "set middle", "set leaf"], "leaf"),
        ("takes", ["add top", "set middle", "remove"], ""),
        ("renews", ["remove", "add middle", "add leaf"], "middle, leaf"),
        ("keeps", ["set top", "add middle", "add leaf"], "top, middle, leaf"),
    ];
    let with = |kind: &str| {
        let members = cases.map(|(case, changes, _)| {
            let changes = changes.map(|change| modifier(kind, change));
            three(&format!("{case}-{}", kind[..3].to_ascii_lowercase()), [&changes[0], &changes[1], &changes[2]])
        });
        members.concat()
    };
    let requests = red_is_the_origin(&with("RequestHeaderModifier"));
    let stage = Stage::of(&[requests, with("ResponseHeaderModifier")], &[])?;
    let _origin = origin(&stage)?;
    for (case, _, expected) in cases {
        let sent = ["--header", "x-order: client"];
        let answer = stage.curl(&format!("{case}-req.t.test:8080/fields"), &sent)?;
        let fields: Vec<(String, String)> =
            serde_json::from_str(&answer.body).with_context(|| format!("{case}: {answer:?}"))?;
        // The client's value comes first, unless it was set or removed on the way.
        let from_client = if case == "adds" { "client, " } else { "" };
        ensure!(of(&fields) == format!("{from_client}{expected}"), "{case}: the endpoint sees {fields:?}");
        let answer = stage.curl(&format!("{case}-res.t.test:8080/"), &[])?;
        ensure!(answer.status == 200 && of(&answer.headers) == expected, "{case}: the client sees {answer:?}");
    }
    Ok(())
}

/// The values of `x-order`.
fn of(fields: &[(String, String)]) -> String {
    let values = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("x-order"));
    values.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ")
}

#[test]
fn mirrors_of_every_level_see_what_comes() -> Result<()> {
    let mirror = |port: u16| {
        filters(&[&format!("{{type: RequestMirror, requestMirror: {{backendRef: {{name: mirror, port: {port}}}}}}}")])
    };
    let text = three("mirror", [&mirror(80), "", &mirror(80)]);
    let stage = Stage::of(&[text, service("shop", "mirror", 9011), service("red", "mirror", 9012)], &[])?;
    let mirrors = [("shop", "9011"), ("red", "9012")];
    let mirrors = mirrors.map(|(name, port)| python::server(&stage.netns, "recording_origin", &[name, port]));
    stage.expect(&[("mirror.t.test:8080/seen", "red /seen")])?;
    for mirror in mirrors {
        let mut mirror = mirror?;
        mirror.wait_for_line("mirror.t.test:8080\tGET\t/seen", PATIENCE)?;
    }
    Ok(())
}

#[test]
fn what_cannot_stand_in_one_rule_keeps_a_child_from_that_slot_alone() -> Result<()> {
    let rewrite = "{type: URLRewrite, urlRewrite: {hostname: other.test}}";
    let redirect = "{type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath, replaceFullPath: /to}}}";
    let cors = "{type: CORS, cors: {allowOrigins: ['https://a.test']}}";
    let slot = |slot: &str, member: &str| to_slot(slot, "all", &prefix(&format!("/{slot}")), member);
    let moved = |filter: &str| filters(&[filter]);
    let literal = format!("{{name: s, matches: [], allowedRoutes: {{namespaces: {{from: All}}}}{}}}", moved(redirect));
    let redirects = format!("{{matches: [{}]{}}}", prefix("/c"), moved(redirect));
    let top = |case: &str, filter: &str| {
        route(&format!("shop/{case}"), WEB, &format!("{case}.t.test"), &[slot("a", &moved(filter)), slot("b", "")])
    };
    let child =
        |case: &str, rule: &str| route(&format!("red/{case}"), &under(&format!("shop/{case}")), "", &[rule.to_owned()]);
    let overlay = fs::read_dir(workspace().join("deploy/crds/overlay"))?
        .map(|entry| Ok(fs::read_to_string(entry?.path())?))
        .collect::<Result<Vec<_>>>()?;
    let mut objects: Vec<String> = overlay.iter().map(|text| format!("---\n{text}\n")).collect();
    objects.extend([
        top("rewrites", rewrite),
        child("rewrites", &own(&prefix("/c"), &moved(rewrite))),
        top("redirects", rewrite),
        child("redirects", &redirects),
        top("cors", cors),
        child("cors", &own(&prefix("/c"), &moved(cors))),
        top("fits", cors),
        child("fits", &own(&prefix("/c"), &moved(rewrite))),
        // A slot that redirects accepts no child; only `allowedRoutes` can express that.
        route("shop/redirecting", WEB, "redirecting.t.test", &[literal, own(&prefix("/own"), "")]),
        child("redirecting", &own("", "")),
    ]);
    Stage::of(&objects, &[])?.expect(&[
        ("rewrites.t.test:8080/a/c", "500"),
        ("rewrites.t.test:8080/b/c", "red /b/c"),
        ("redirects.t.test:8080/a/c", "500"),
        ("redirects.t.test:8080/b/c", "302"),
        ("cors.t.test:8080/a/c", "500"),
        ("cors.t.test:8080/b/c", "red /b/c"),
        ("fits.t.test:8080/a/c", "red /a/c"),
        ("fits.t.test:8080/b/c", "red /b/c"),
        ("redirecting.t.test:8080/", "500"),
        ("redirecting.t.test:8080/own", "shop /own"),
    ])
}

#[test]
fn a_level_that_says_nothing_of_retries_has_its_parents() -> Result<()> {
    let retry = |attempts: u32| format!(", retry: {{attempts: {attempts}, codes: [503]}}");
    // The endpoint fails twice.
    let cases = [
        ("leaf", [String::new(), String::new(), retry(2)], 200),
        ("top", [retry(2), String::new(), String::new()], 200),
        ("middle", [retry(1), retry(2), String::new()], 200),
        ("less", [retry(2), String::new(), retry(1)], 503),
        ("nothing", [String::new(), String::new(), String::new()], 503),
    ];
    let text: String = cases.iter().map(|(case, [a, b, c], _)| three(case, [a, b, c])).collect();
    let stage = Stage::of(&[red_is_the_origin(&text)], &[])?;
    let _origin = origin(&stage)?;
    for (case, _, status) in cases {
        let answer = stage.curl(&format!("{case}.t.test:8080/after/2"), &[])?;
        ensure!(answer.status == status, "{case} comes to {}", answer.status);
        ensure!(status != 200 || answer.body == "3", "{case} was answered the {}th time", answer.body);
    }
    Ok(())
}

#[test]
fn the_shortest_time_out_on_a_way_ends_a_request() -> Result<()> {
    let request = |limit: &str| format!(", timeouts: {{request: {limit}}}");
    let endpoint = |limit: &str| format!(", timeouts: {{backendRequest: {limit}}}");
    let (short, long) = ("100ms", "50s");
    let cases = [
        ("top", [request(short), request(long), request(long)]),
        ("middle", [request(long), request(short), request(long)]),
        ("leaf", [request(long), String::new(), request(short)]),
        // Zero means no time-out, and removes none.
        ("zero", [request(short), request("0s"), request("0s")]),
        ("endpoint-top", [endpoint(short), String::new(), endpoint(long)]),
        ("endpoint-leaf", [endpoint(long), endpoint(long), endpoint(short)]),
        ("both", [request(long), endpoint(short), String::new()]),
        ("patient", [request(long), endpoint(long), request("0s")]),
        ("endless", [request("0s"), request("0s"), endpoint("0s")]),
    ];
    let text: String =
        cases.iter().map(|(case, members)| three(case, [&members[0], &members[1], &members[2]])).collect();
    let stage = Stage::of(&[red_is_the_origin(&text)], &[])?;
    let _origin = origin(&stage)?;
    let there = |path: &str, arguments: &[&str]| {
        let answer = Client::new(&stage.netns).curl(&format!("http://127.0.0.1:9010/{path}"), arguments)?;
        Ok::<Value, anyhow::Error>(serde_json::from_str(&answer.body).unwrap_or_default())
    };
    let ask = |case: &str| stage.curl(&format!("{case}.t.test:8080/held"), &[]).map(|answer| answer.status);
    let names = cases.iter().map(|(case, _)| *case);
    let (patient, short): (Vec<_>, Vec<_>) = names.partition(|case| ["patient", "endless"].contains(case));
    thread::scope(|scope| {
        let waiting: Vec<_> = patient.iter().map(|case| scope.spawn(|| ask(case))).collect();
        wait_until("requests wait at the endpoint", PATIENCE, || {
            there("waiting", &[]).is_ok_and(|count| count == waiting.len())
        })?;
        // While these wait, the others time out.
        for case in &short {
            let status = ask(case)?;
            ensure!(status == 504, "{case} comes to {status}");
        }
        there("release", &["--request", "POST"])?;
        for (case, answer) in patient.iter().zip(waiting) {
            let status = answer.join().expect("curl ends")?;
            ensure!(status == 200, "{case} comes to {status}");
        }
        Ok(())
    })
}
