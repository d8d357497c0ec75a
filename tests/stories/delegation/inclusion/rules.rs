//! Each rule of inclusion that changes traffic, on a host of its own.

use super::*;

const GATEWAY: &str = "---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: public}
spec:
  gatewayClassName: sluice
  listeners: [{name: web, port: 8080, protocol: HTTP, hostname: \"*.t.test\", allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.sluice.dev/v1alpha1
kind: RouteSlot
metadata: {namespace: shop, name: all}
spec: {allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {namespace: shop, name: lend}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: red}]
  to: [{group: \"\", kind: Service, name: admin}]
";

/// A parent for `NAME.t.test` whose only rule is a slot, with this match and these filters; and its child in `red`,
/// whose only rule has this match, these filters and this backend.
fn pair(name: &str, parent: [&str; 2], child: [&str; 2], backend: &str) -> String {
    let (group, [above, filters], [own, more]) = ("gateway.networking.k8s.io/v1", parent, child);
    format!(
        "---
apiVersion: {group}
kind: HTTPRoute
metadata: {{namespace: shop, name: {name}}}
spec:
  parentRefs: [{{name: public}}]
  hostnames: [{name}.t.test]
  rules:
  - matches: [{above}]
    filters: [{filters}]
    backendRefs: [{{group: gateway.sluice.dev, kind: RouteSlot, name: all}}]
---
apiVersion: {group}
kind: HTTPRoute
metadata: {{namespace: red, name: {name}}}
spec:
  parentRefs: [{{kind: HTTPRoute, namespace: shop, name: {name}}}]
  rules:
  - matches: [{own}]
    filters: [{more}]
    backendRefs: [{backend}]
"
    )
}

#[test]
fn each_rule_of_inclusion_is_kept_on_the_wire() -> Result<()> {
    let prefix = |path: &str| format!("{{path: {{type: PathPrefix, value: {path}}}}}");
    let exact = |path: &str| format!("{{path: {{type: Exact, value: {path}}}}}");
    let expression = "{path: {type: RegularExpression, value: '/v[0-9]+'}}";
    let query = |value: &str| format!("{{queryParams: [{{name: team, value: {value}}}]}}");
    let header = |value: &str| format!("{{headers: [{{name: x-team, value: {value}}}]}}");
    let method = |method: &str| format!("{{method: {method}}}");
    let rewrite = "{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /r}}}";
    let own = "{name: team, port: 80}";
    let foreign = |name: &str| format!("{{namespace: shop, name: {name}, port: 80}}");
    let direct = pair("direct", [&prefix("/in"), ""], [&prefix("/x"), ""], own).replace(
        "parentRefs: [{kind: HTTPRoute, namespace: shop, name: direct}]",
        "hostnames: [direct.t.test]\n  parentRefs: [{kind: HTTPRoute, namespace: shop, name: direct}, {namespace: shop, name: public}]",
    );
    let text = [
        namespace("red", true),
        GATEWAY.to_owned(),
        service("shop", "admin", 9001),
        service("shop", "vault", 9001),
        service("red", "team", 9002),
        pair("join", [&prefix("/a/"), ""], [&exact("/b"), ""], own),
        pair("top", [&prefix("/"), ""], [&prefix("/a"), ""], own),
        pair("slashes", [&prefix("/a/"), ""], [&prefix("/b/"), ""], own),
        pair("itself", [&prefix("/a"), ""], [&exact("/"), ""], own),
        pair("exact", [&exact("/e"), ""], ["", ""], own),
        pair("below", [&exact("/e"), ""], [&prefix("/x"), ""], own),
        pair("expression", [&prefix("/"), ""], [expression, ""], own),
        pair("inside", [&prefix("/a"), ""], [expression, ""], own),
        pair("all", ["", ""], ["", ""], own),
        pair("header", [&header("one"), ""], [&header("two"), ""], own),
        pair("query", [&query("one"), ""], [&query("two"), ""], own),
        pair("method", [&method("GET"), ""], [&method("POST"), ""], own),
        pair("rewrite", [&prefix("/w"), rewrite], [&prefix("/x"), rewrite], own),
        pair("once", [&prefix("/w"), ""], [&prefix("/x"), rewrite], own),
        pair("granted", ["", ""], ["", ""], &foreign("admin")),
        pair("refused", ["", ""], ["", ""], &foreign("vault")),
        direct,
    ];
    let stage = Stage::new(&["admin", "red"], &text.concat())?;
    stage.expect(&[
        // Paths are joined by whole elements, with or without slashes at their ends.
        ("join.t.test:8080/a/b", "red /a/b"),
        ("join.t.test:8080/a/bc", "404"),
        ("join.t.test:8080/a", "404"),
        ("join.t.test:8080/ab", "404"),
        ("top.t.test:8080/a/b", "red /a/b"),
        ("top.t.test:8080/", "404"),
        ("slashes.t.test:8080/a/b", "red /a/b"),
        ("slashes.t.test:8080/a/b/c", "red /a/b/c"),
        ("slashes.t.test:8080/a/bc", "404"),
        ("itself.t.test:8080/a", "red /a"),
        ("itself.t.test:8080/a/b", "404"),
        // Regular expressions are allowed only at the beginning of a path.
        ("expression.t.test:8080/v1", "red /v1"),
        ("expression.t.test:8080/v", "404"),
        ("inside.t.test:8080/a/v1", "500"),
        // Below an exact path, a child omits its path, and inherits that one.
        ("exact.t.test:8080/e", "red /e"),
        ("exact.t.test:8080/e/x", "404"),
        ("below.t.test:8080/e/x", "404"),
        ("below.t.test:8080/e", "500"),
        ("all.t.test:8080/", "red /"),
        ("all.t.test:8080/any", "red /any"),
        // If the parent has a condition on a parameter, only that condition applies.
        ("query.t.test:8080/?team=one", "red /?team=one"),
        ("query.t.test:8080/?team=two", "404"),
        // No request has both methods, so the slot has no child.
        ("method.t.test:8080/", "500"),
        // Two rewrites conflict; a single one replaces the entire prefix matched by both.
        ("rewrite.t.test:8080/w/x", "500"),
        ("once.t.test:8080/w/x/y", "red /r/y"),
        // A child's references resolve in its own namespace.
        ("granted.t.test:8080/", "admin /"),
        ("refused.t.test:8080/", "500"),
        // A child may be attached to the Gateway as well.
        ("direct.t.test:8080/in/x", "red /in/x"),
        ("direct.t.test:8080/x", "red /x"),
    ])?;
    for (value, status) in [("one", 200), ("two", 404)] {
        let answer = stage.curl("header.t.test:8080/", &["--header", &format!("x-team: {value}")])?;
        ensure!(answer.status == status, "the parent's condition on a header is the only one: {value}: {answer:?}");
    }
    Ok(())
}
