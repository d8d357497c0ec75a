//! Property tests: random trees and requests, compared with a model that walks the tree for each request.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use router_api::gateway_api::types::{
    AllowedRoutes, BackendRef, Filter, FromNamespaces, GROUP, GatewayRoute, ObjectReference, ParentRef, RouteRule,
    RouteSlot, SLUICE_GROUP, UrlRewrite,
};
use router_api::object::Object;
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::names::Hostname;
use router_model::object::{Created, Manifest, Meta, ObjectKey, ObjectRef, Origin, TextMap, Uid};
use router_table::cors::Cors;
use router_table::host_pattern::HostPattern;
use router_table::matchers::{PathMatcher, RequestMatcher, ValueMatcher};
use serde_json::{Value, json};

use super::*;
use crate::gateway::inclusion::order::Precedence;
use crate::gateway::inclusion::types::{Fragment, IncludedRow, RuleOutcome};
use crate::settings::MaxDepth;

/// A listener `public#<name>` and its hostname.
type TestListener = (Arc<str>, HostPattern);

#[derive(Clone, Debug)]
struct Scenario {
    listeners: Vec<TestListener>,
    routes: Vec<Arc<GatewayRoute>>,
    slots: Vec<Arc<RouteSlot>>,
    depth: u8,
}

#[derive(Clone, Debug)]
struct TestRequest {
    host: Hostname,
    path: String,
    method: &'static str,
    header: &'static str,
}

/// The routes and rules that a request passes, and its outcome.
type Answer = Option<(Vec<(ObjectKey, usize)>, RuleOutcome)>;

fn name(text: &str) -> Hostname {
    Hostname::parse(text).unwrap()
}

fn pattern(text: &str) -> HostPattern {
    match text.strip_prefix("*.") {
        Some(domain) => HostPattern::Suffix(name(domain)),
        None if text == "*" => HostPattern::Any,
        None => HostPattern::Exact(name(text)),
    }
}

const HOSTS: [&str; 6] = ["*.test", "*.x.test", "*.a.x.test", "a.x.test", "b.x.test", "c.a.x.test"];
/// A matching name for each pattern and for each pair of nested patterns.
const NAMES: [&str; 7] = ["y.test", "x.test", "b.x.test", "a.x.test", "c.a.x.test", "d.a.x.test", "other"];
const METHODS: [&str; 2] = ["GET", "POST"];
const ROUTES: usize = 6;

fn meta(name: &str, namespace: &str, age: u32) -> Meta {
    Meta {
        key: ObjectKey::new(namespace, name),
        labels: TextMap::default(),
        created: Created(Some(jiff::Timestamp::from_second(age.into()).unwrap())),
        uid: Uid::default(),
        generation: 1,
        origin: Origin::default(),
    }
}

fn matchers() -> impl Strategy<Value = RequestMatcher> {
    let path = prop_oneof![
        4 => select(vec!["/", "/a", "/a/b", "/b", "/ab"]).prop_map(|path| PathMatcher::Prefix(path.into())),
        1 => select(vec!["/", "/a", "/a/b"]).prop_map(|path| PathMatcher::Exact(path.into())),
    ];
    let method = prop::option::weighted(0.2, select(METHODS.to_vec()));
    let header = prop::option::weighted(0.2, select(vec!["1", "2"]));
    (path, method, header).prop_map(|(path, method, header)| RequestMatcher {
        path,
        method: method.map(Into::into),
        headers: header.map(|value| ("x".into(), ValueMatcher::Exact(value.into()))).into_iter().collect(),
        query: Vec::new(),
    })
}

fn rules() -> impl Strategy<Value = (RouteRule, bool)> {
    let filter = prop_oneof![
        8 => Just(None),
        1 => Just(Some(Filter::Rewrite(UrlRewrite::default()))),
        1 => Just(Some(Filter::Cors(Cors::default()))),
    ];
    (prop::option::of(select(vec!["s", "t"])), vec(matchers(), 1..3), filter, any::<bool>()).prop_map(
        |(name, matches, filter, slot)| {
            let filters = filter.into_iter().collect();
            (RouteRule { name: name.map(Into::into), matches, filters, ..RouteRule::default() }, slot)
        },
    )
}

fn parents() -> impl Strategy<Value = ParentRef> {
    let object = prop_oneof![
        2 => Just((Kind::Gateway, "public".to_owned())),
        5 => (0..ROUTES).prop_map(|i| (Kind::HttpRoute, format!("r{i}"))),
    ];
    (object, prop::option::weighted(0.4, select(vec!["s", "t", "http"]))).prop_map(|((kind, name), section)| {
        let object = ObjectReference {
            group: GROUP.into(),
            kind: kind.name().into(),
            namespace: Some(namespace_of(&name).into()),
            name: name.into(),
        };
        ParentRef { object, section: section.map(Into::into), port: None }
    })
}

/// Routes of even numbers are in one namespace, the others in another.
fn namespace_of(name: &str) -> &'static str {
    if name.ends_with(['0', '2', '4']) { "red" } else { "blue" }
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let route =
        (vec(parents(), 0..4), subsequence(HOSTS.to_vec(), 0..2), vec(rules(), 1..4), 0..3u32, vec(any::<bool>(), 4));
    let listeners = subsequence(vec!["*", "*.test", "*.x.test", "a.x.test"], 1..3);
    (listeners, vec(route, ROUTES), 2..6u8).prop_map(|(listeners, routes, depth)| {
        let section = |i| if i == 0 { "http".into() } else { format!("s{i}").into() };
        let listeners = listeners.into_iter().enumerate().map(|(i, host)| (section(i), pattern(host))).collect();
        let mut scenario = Scenario { listeners, routes: Vec::new(), slots: Vec::new(), depth };
        for (i, (parents, hostnames, rules, age, open)) in routes.into_iter().enumerate() {
            let id = format!("r{i}");
            let namespace = namespace_of(&id);
            let mut own = Vec::new();
            for (j, (mut rule, slot)) in rules.into_iter().enumerate() {
                if slot {
                    let name: Arc<str> = format!("{id}-{j}").into();
                    let from = if open[j] { FromNamespaces::All } else { FromNamespaces::Same };
                    scenario.slots.push(Arc::new(RouteSlot {
                        meta: meta(&name, namespace, 0),
                        manifest: Manifest::new(&json!({})),
                        allowed: AllowedRoutes { kinds: None, from },
                    }));
                    let (group, kind) = (SLUICE_GROUP.into(), Kind::RouteSlot.name().into());
                    let object = ObjectReference { group, kind, namespace: None, name };
                    rule.backends = vec![BackendRef { object, port: None, weight: 1, filters: Vec::new() }];
                }
                own.push(rule);
            }
            // If several rules have one name, the API uses only the first.
            let mut names = BTreeSet::new();
            own.iter_mut().for_each(|rule| rule.name = rule.name.take().filter(|name| names.insert(name.clone())));
            scenario.routes.push(Arc::new(GatewayRoute {
                kind: Kind::HttpRoute,
                meta: meta(&id, namespace, age),
                manifest: Manifest::new(&json!({})),
                parents,
                hostnames: hostnames.into_iter().map(pattern).collect(),
                rules: own,
            }));
        }
        scenario
    })
}

fn requests() -> impl Strategy<Value = TestRequest> {
    let path = vec(select(vec!["a", "b", "ab"]), 0..4).prop_map(|parts| format!("/{}", parts.join("/")));
    (select(NAMES.to_vec()), path, select(METHODS.to_vec()), select(vec!["1", "2", ""]))
        .prop_map(|(host, path, method, header)| TestRequest { host: name(host), path, method, header })
}

impl Scenario {
    fn expand(&self, backwards: bool) -> (Vec<(TestListener, Arc<GatewayRoute>)>, Expanded) {
        let mut resources = Resources::default();
        self.routes.iter().for_each(|route| resources.insert(&Object::HttpRoute(route.clone())));
        self.slots.iter().for_each(|slot| resources.insert(&Object::RouteSlot(slot.clone())));
        let gateway = ObjectKey::new("blue", "public");
        let attached = self.root_routes().into_iter().map(|(listener, route, parent)| {
            let own = route.hostnames.iter().filter_map(|host| host.intersect(&listener.1)).collect();
            (listener, route, parent, if route.hostnames.is_empty() { vec![listener.1.clone()] } else { own })
        });
        let attached: Vec<_> = attached.collect();
        let root_routes = attached.iter().map(|(listener, route, parent, hosts)| RootRoute {
            gateway: &gateway,
            section: listener.0.clone(),
            route,
            parent: *parent,
            hosts,
        });
        let mut root_routes: Vec<_> = root_routes.collect();
        if backwards {
            root_routes.reverse();
        }
        let context = Context {
            resources: &resources,
            max_depth: MaxDepth::new(self.depth).unwrap(),
            gateways: &BTreeMap::from([(gateway.clone(), 0)]),
            rejection: &|_| None,
            is_reported: &|_| true,
        };
        let expanded = expand(&context, &root_routes);
        let listener = |root_route: &RootRoute<'_>| {
            self.listeners.iter().find(|listener| listener.0 == root_route.section).unwrap().clone()
        };
        (root_routes.iter().map(|root_route| (listener(root_route), root_route.route.clone())).collect(), expanded)
    }

    /// Routes attached to listeners.
    fn root_routes(&self) -> Vec<(&TestListener, &Arc<GatewayRoute>, usize)> {
        let mut root_routes: Vec<(&TestListener, &Arc<GatewayRoute>, usize)> = Vec::new();
        for listener in &self.listeners {
            for route in &self.routes {
                let names = |parent: &ParentRef| {
                    &*parent.object.kind == "Gateway" && parent.section.as_ref().is_none_or(|name| *name == listener.0)
                };
                let meet = |host: &HostPattern| host.intersect(&listener.1).is_some();
                if let Some(parent) = route.parents.iter().position(names)
                    && (route.hostnames.is_empty() || route.hostnames.iter().any(meet))
                {
                    root_routes.push((listener, route, parent));
                }
            }
        }
        root_routes
    }
}

/// The outcome of a request under the flat rules of a listener.
fn flat(
    root_routes: &[(TestListener, Arc<GatewayRoute>)],
    expanded: &Expanded,
    listener: &TestListener,
    request: &TestRequest,
) -> Answer {
    let listener_rules = root_routes.iter().zip(&expanded.walks).filter(|((own, _), _)| own == listener);
    let precedence = Precedence::new(listener_rules.flat_map(|(_, walk)| &walk.rules));
    let (rule, _) = precedence
        .rules_for(&HostPattern::Exact(request.host.clone()))
        .into_iter()
        .find(|(_, alternative)| matches(&alternative.matcher, request, &request.path, &[]))?;
    let branch = rule.levels.iter().map(|level| (level.route.meta.key.clone(), level.rule)).collect();
    Some((branch, rule.outcome))
}

/// True if a request matches; `path` is the part below the parents' paths. Headers that an ancestor matches on are not
/// compared again.
fn matches(matcher: &RequestMatcher, request: &TestRequest, path: &str, above: &[&RequestMatcher]) -> bool {
    let path = match &matcher.path {
        PathMatcher::Prefix(prefix) => rest(prefix, path).is_some(),
        PathMatcher::Exact(exact) => **exact == *path,
        PathMatcher::Regex(_) => unreachable!("none is made"),
    };
    let header = matcher.headers.is_empty()
        || above.iter().any(|matcher| !matcher.headers.is_empty())
        || matches!(&matcher.headers[0].1, ValueMatcher::Exact(value) if **value == *request.header);
    path && header && matcher.method.as_ref().is_none_or(|method| **method == *request.method)
}

/// The rest of a path below a prefix.
fn rest<'p>(prefix: &str, path: &'p str) -> Option<&'p str> {
    if prefix == "/" {
        return Some(path);
    }
    match path.strip_prefix(prefix)? {
        "" => Some("/"),
        rest => rest.starts_with('/').then_some(rest),
    }
}

/// The model: from the listener down, the best match at each level, without backtracking.
struct TreeModel<'w> {
    scenario: &'w Scenario,
    listener: &'w TestListener,
}

/// A slot on a branch: the route, the index of the rule, and the index of the match.
type BranchStep<'w> = (&'w Arc<GatewayRoute>, usize, usize);

impl<'w> TreeModel<'w> {
    fn answer(&self, request: &TestRequest) -> Answer {
        let root_routes = self.scenario.root_routes().into_iter().filter(|(listener, ..)| *listener == self.listener);
        self.choose(request, &mut Vec::new(), root_routes.map(|(_, route, _)| route).collect())
    }

    fn choose(
        &self,
        request: &TestRequest,
        branch: &mut Vec<BranchStep<'w>>,
        routes: Vec<&'w Arc<GatewayRoute>>,
    ) -> Answer {
        let mut best: Option<(_, BranchStep<'w>)> = None;
        for route in routes {
            let Some(host) = self.host(branch, route, &request.host) else { continue };
            for (i, rule) in route.rules.iter().enumerate() {
                for (j, own) in rule.matches.iter().enumerate() {
                    let branch: Vec<_> = branch.iter().copied().chain([(route, i, j)]).collect();
                    if !self.fits(&branch, request) {
                        continue;
                    }
                    let (exact, long) = match &own.path {
                        PathMatcher::Exact(path) => (true, path.len()),
                        PathMatcher::Prefix(path) => (false, path.len()),
                        PathMatcher::Regex(_) => unreachable!("none is made"),
                    };
                    let slot = is_slot(route, i);
                    let below = if slot { self.narrowest_below(&branch, request).unwrap_or(host) } else { host };
                    let key = (
                        host,
                        (Reverse(exact), Reverse(long), Reverse(own.method.is_some()), Reverse(own.headers.len())),
                        (route.meta.created, route.meta.key.clone()),
                        // Of equal rules of a route: first one with a child of a narrower host, then a plain rule.
                        (below, slot, i, j),
                    );
                    if best.as_ref().is_none_or(|(known, _)| key < *known) {
                        best = Some((key, (route, i, j)));
                    }
                }
            }
        }
        let (_, step) = best?;
        branch.push(step);
        let steps =
            |branch: &[BranchStep<'_>]| branch.iter().map(|(route, rule, _)| (route.meta.key.clone(), *rule)).collect();
        if !is_slot(step.0, step.1) {
            return Some((steps(branch), RuleOutcome::Serve));
        }
        let children: Vec<_> = self.scenario.routes.iter().filter(|child| self.attaches(branch, child)).collect();
        let outcome = if children.is_empty() { RuleOutcome::NoBackend } else { RuleOutcome::NoChild };
        self.choose(request, branch, children).or_else(|| Some((steps(branch), outcome)))
    }

    /// Specificity of the hosts of children below the last slot of a branch that have a rule for the request.
    fn narrowest_below(&self, branch: &[BranchStep<'w>], request: &TestRequest) -> Option<(bool, Reverse<usize>)> {
        let children = self.scenario.routes.iter().filter(|child| self.attaches(branch, child));
        let has_rule = |child: &&'w Arc<GatewayRoute>| {
            child.rules.iter().enumerate().any(|(i, rule)| {
                (0..rule.matches.len()).any(|j| self.fits(&[branch, &[(*child, i, j)]].concat(), request))
            })
        };
        children.filter(has_rule).filter_map(|child| self.host(branch, child, &request.host)).min()
    }

    /// Specificity of a route's hosts for a name at the end of a branch (smaller is more specific); `None` if it has no
    /// such host.
    fn host(&self, branch: &[BranchStep<'_>], route: &GatewayRoute, host: &Hostname) -> Option<(bool, Reverse<usize>)> {
        let routes = branch.iter().map(|(route, ..)| &***route).chain([route]);
        let lists = routes.map(|route| route.hostnames.as_slice()).filter(|list| !list.is_empty());
        let own = [self.listener.1.clone()];
        let lists: Vec<_> = lists.chain([own.as_slice()]).collect();
        let exact = HostPattern::Exact(host.clone());
        // A name that all lists cover is served by the most specific pattern of any list.
        lists.iter().try_fold((true, Reverse(0)), |best, list| {
            let covering = list.iter().filter(|pattern| pattern.covers(&exact));
            let specific = covering.map(|pattern| match pattern {
                HostPattern::Exact(_) => (false, Reverse(usize::MAX)),
                HostPattern::Suffix(domain) => (true, Reverse(domain.as_str().len())),
                HostPattern::Any => (true, Reverse(0)),
            });
            specific.min().map(|specific| best.min(specific))
        })
    }

    /// True if a request matches every level of a branch, each applied to the path that the level above left.
    fn fits(&self, branch: &[BranchStep<'_>], request: &TestRequest) -> bool {
        let mut path = Some(request.path.as_str());
        let mut above: Vec<&RequestMatcher> = Vec::new();
        branch.iter().all(|(route, rule, alternative)| {
            let matcher = &route.rules[*rule].matches[*alternative];
            let fits = match path {
                Some(path) => matches(matcher, request, path, &above),
                // Below an exact path, only a match without a path applies.
                None => {
                    matches!(&matcher.path, PathMatcher::Prefix(prefix) if &**prefix == "/")
                        && matches(matcher, request, "/", &above)
                }
            };
            path = match &matcher.path {
                PathMatcher::Prefix(prefix) => path.and_then(|path| rest(prefix, path)),
                _ => None,
            };
            above.push(matcher);
            fits
        })
    }

    /// True if a child attaches to the slot at the end of a branch.
    fn attaches(&self, branch: &[BranchStep<'_>], child: &GatewayRoute) -> bool {
        let Some((parent, rule, _)) = branch.last() else { return false };
        let key = |route: &GatewayRoute| route.meta.key.clone();
        let named = child.parents.iter().any(|reference| {
            &*reference.object.kind == "HTTPRoute"
                && *reference.object.name == *parent.meta.key.name
                && reference.section.as_ref().is_none_or(|name| parent.rules[*rule].name.as_ref() == Some(name))
        });
        let slot_name = &*parent.rules[*rule].backends[0].object.name;
        let slot = self.scenario.slots.iter().find(|slot| &*slot.meta.key.name == slot_name).unwrap();
        let admitted = match slot.allowed.from {
            FromNamespaces::All => true,
            _ => child.meta.key.namespace == parent.meta.key.namespace,
        };
        let has = |is: fn(&Filter) -> bool| {
            let above = branch.iter().any(|(route, rule, _)| route.rules[*rule].filters.iter().any(is));
            above && child.rules.iter().any(|rule| rule.filters.iter().any(is))
        };
        named
            && admitted
            && branch.len() < usize::from(self.scenario.depth)
            && branch.iter().all(|(route, ..)| key(route) != key(child))
            && !has(|filter| matches!(filter, Filter::Rewrite(_)))
            && !has(|filter| matches!(filter, Filter::Cors(_)))
            && NAMES.iter().any(|host| self.host(branch, child, &name(host)).is_some())
            && self.some_request_fits(branch, child)
    }

    /// True if some request can match the child and the slots above it.
    fn some_request_fits(&self, branch: &[BranchStep<'_>], child: &GatewayRoute) -> bool {
        let child = Arc::new(child.clone());
        let mut branches: Vec<Vec<BranchStep<'_>>> = vec![Vec::new()];
        for (route, rule) in branch.iter().map(|(route, rule, _)| (*route, *rule)) {
            let alternatives = 0..route.rules[rule].matches.len();
            branches = alternatives
                .flat_map(|j| branches.iter().map(move |branch| [branch.as_slice(), &[(route, rule, j)]].concat()))
                .collect();
        }
        let paths: BTreeSet<String> = branches.iter().flat_map(|branch| paths_of(branch, &child)).collect();
        let own = child.rules.iter().enumerate().flat_map(|(i, rule)| (0..rule.matches.len()).map(move |j| (i, j)));
        let own: Vec<_> = own.collect();
        branches.iter().any(|branch| {
            own.iter().any(|(i, j)| {
                let branch = [branch.as_slice(), &[(&child, *i, *j)]].concat();
                paths.iter().any(|path| {
                    METHODS.iter().any(|method| {
                        // Of each header only the uppermost condition counts, so some value always matches.
                        ["1", "2"].iter().any(|header| {
                            let (path, host) = (path.clone(), name("other"));
                            self.fits(&branch, &TestRequest { host, path, method, header })
                        })
                    })
                })
            })
        })
    }
}

fn is_slot(route: &GatewayRoute, rule: usize) -> bool {
    !route.rules[rule].backends.is_empty()
}

/// Candidate paths for the matches on a branch.
fn paths_of(branch: &[BranchStep<'_>], child: &GatewayRoute) -> Vec<String> {
    let text = |matcher: &RequestMatcher| match &matcher.path {
        PathMatcher::Prefix(path) | PathMatcher::Exact(path) => path.trim_end_matches('/').to_owned(),
        PathMatcher::Regex(_) => unreachable!("none is made"),
    };
    let above: String = branch.iter().map(|(route, rule, j)| text(&route.rules[*rule].matches[*j])).collect();
    let own = child.rules.iter().flat_map(|rule| &rule.matches);
    own.map(|matcher| format!("{above}{}", text(matcher)))
        .map(|path| if path.is_empty() { "/".to_owned() } else { path })
        .collect()
}

/// A fragment without messages: those of a sibling name the older one that shadows it.
fn without_messages(fragment: &Fragment) -> Value {
    let rows = fragment.rows.iter().map(|row| {
        let IncludedRow { parent, accepted, summary, .. } = row;
        json!([format!("{parent:?}"), accepted.holds, accepted.reason, summary.hosts])
    });
    json!([rows.collect::<Value>(), fragment.slots.values().collect::<Vec<_>>()])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// So a child never receives a request outside its parents' hosts and matches, nor one that a more specific rule of
    /// its parent matches.
    #[test]
    fn flat_rules_match_like_a_walk_down_the_tree(scenario in scenarios(), requests in vec(requests(), 30)) {
        let (root_routes, expanded) = scenario.expand(false);
        for listener in &scenario.listeners {
            let model = TreeModel { scenario: &scenario, listener };
            for request in &requests {
                let answer = flat(&root_routes, &expanded, listener, request);
                prop_assert_eq!(&answer, &model.answer(request), "{:?} on {:?}", request, listener);
            }
        }
    }

    #[test]
    fn removing_an_edge_changes_only_routes_below_it(
        scenario in scenarios(), which in any::<prop::sample::Index>(), requests in vec(requests(), 30),
    ) {
        let all = scenario.routes.iter().enumerate().flat_map(|(i, route)| {
            let routes = route.parents.iter().enumerate().filter(|(_, parent)| &*parent.object.kind == "HTTPRoute");
            routes.map(move |(edge, _)| (i, edge))
        });
        let all: Vec<_> = all.collect();
        prop_assume!(!all.is_empty());
        let (child, edge) = *which.get(&all);
        let cut = scenario.routes[child].parents[edge].clone();
        let parent = ObjectKey::new(cut.object.namespace.as_ref().unwrap(), &cut.object.name);
        let mut after = scenario.clone();
        let mut route = GatewayRoute::clone(&scenario.routes[child]);
        route.parents.remove(edge);
        let child = route.meta.key.clone();
        let index = after.routes.iter().position(|known| known.meta.key == child).unwrap();
        after.routes[index] = Arc::new(route);

        let (root_routes_before, before) = scenario.expand(false);
        let (root_routes_after, after) = after.expand(false);
        for listener in &scenario.listeners {
            for request in &requests {
                let old = flat(&root_routes_before, &before, listener, request);
                let new = flat(&root_routes_after, &after, listener, request);
                let Some((branch, outcome)) = &old else {
                    prop_assert_eq!(&old, &new);
                    continue;
                };
                let through = branch.windows(2).any(|two| two[0].0 == parent && two[1].0 == child);
                // The slot has lost its last child, so it has no backend any more.
                let is_parent_last = branch.last().is_some_and(|(route, _)| *route == parent);
                let emptied = *outcome == RuleOutcome::NoChild && is_parent_last;
                if emptied {
                    let (new_branch, new_outcome) = new.as_ref().unwrap();
                    prop_assert_eq!(new_branch, branch);
                    prop_assert!(matches!(new_outcome, RuleOutcome::NoChild | RuleOutcome::NoBackend));
                } else if !through {
                    prop_assert_eq!(&old, &new, "{:?}", request);
                }
            }
        }
        let mut below = BTreeSet::from([child]);
        for _ in 0..ROUTES {
            let is_below = |route: &&Arc<GatewayRoute>| {
                let mut parents = route.parents.iter().filter(|parent| &*parent.object.kind == "HTTPRoute");
                parents.any(|parent| below.iter().any(|key| key.name == parent.object.name))
            };
            let more: Vec<_> = scenario.routes.iter().filter(is_below).map(|route| route.meta.key.clone()).collect();
            below.extend(more);
        }
        let affected = |object: &ObjectRef| below.contains(&object.key) || object.key == parent;
        for (object, fragment) in before.fragments.iter().filter(|(object, _)| !affected(object)) {
            prop_assert_eq!(Some(without_messages(fragment)), after.fragments.get(object).map(without_messages), "{}", object);
        }
    }

    #[test]
    fn results_do_not_depend_on_the_order_of_routes(scenario in scenarios()) {
        let (_, one) = scenario.expand(false);
        let (_, mut other) = scenario.expand(true);
        other.walks.reverse();
        let rules = |expanded: &Expanded| expanded.walks.iter().map(|walk| format!("{:?}", walk.rules)).collect::<Vec<_>>();
        prop_assert_eq!(rules(&one), rules(&other));
        prop_assert_eq!(one.fragments, other.fragments);
    }
}
