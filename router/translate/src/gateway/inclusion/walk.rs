//! Walks the tree of routes from each listener down to all attached children, and merges their rules.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use router_api::gateway_api::types::{Filter, GatewayRoute};
use router_api::redirect::PathModifier;
use router_model::object::{Created, ObjectKey, ObjectRef};
use router_model::parallel;
use router_table::host_pattern::HostPattern;
use router_table::matchers::{PathMatcher, RequestMatcher};
use router_table::rule::Retry;

use super::edges::{ChildCandidate, ChildRejection, Edges, route_name, rule_name};
use super::filters;
use super::matches::{Mismatch, canonical, combine};
use super::slots::Slot;
use crate::gateway::inclusion::level_key::LevelKey;
use crate::gateway::inclusion::types::{
    Alternative, AuthoredFilter, Context, EffectiveRule, Level, RootRoute, RuleOutcome, WalkResult,
};

/// Maximum number of matches of one child below one slot, summed over its rules and all paths to the slot.
const MAX_MATCHES: usize = 1024;
/// Maximum number of matches of all children below one root route. A child of many slots counts in each of them;
/// without a limit, a few routes could expand to millions of rules.
pub const MAX_MATCHES_BELOW: usize = 16_384;
/// Maximum number of matches evaluated below one root route, including those of children that are then rejected.
const MAX_EVALUATED: usize = 16 * MAX_MATCHES_BELOW;
/// Maximum number of paths from one root route to one route. Real trees need a few; without a limit, the walk over a
/// few tens of routes that all reference each other would not end in practice.
const MAX_PATHS: usize = 64;

/// Results of all walks.
pub struct Walked<'r> {
    /// The result for each root route.
    pub walks: Vec<WalkResult>,
    /// Every attempt to attach a child to a slot, in the order of the walk.
    pub paths: Vec<InclusionPath<'r>>,
}

/// One attempt to attach a child to a slot: a path from a listener to a route.
pub struct InclusionPath<'r> {
    /// Index of the root route.
    pub root_route: usize,
    /// The slots on the path, from the root down.
    pub slots: Vec<(&'r GatewayRoute, usize)>,
    /// The child.
    pub child: &'r Arc<GatewayRoute>,
    /// Indices of the child's `parentRefs` that name the last slot.
    pub references: &'r [usize],
    /// The child's hosts below the slot, or why it is not attached.
    pub result: Result<Arc<[HostPattern]>, ChildRejection>,
    /// Notes on parts of the child that have no effect below the slot.
    pub notes: Vec<String>,
    /// Rules dropped below the slot because of unsupported values.
    pub dropped: Dropped,
}

/// Unsupported values, by index of the rule.
pub type Dropped = BTreeMap<usize, String>;

/// Walks down from every root route.
pub fn walk<'r>(context: &Context<'_>, edges: &'r Edges<'r>, root_routes: &'r [RootRoute<'r>]) -> Walked<'r> {
    let depth = context.max_depth.routes();
    let start = LevelState::start();
    let root_routes: Vec<_> = root_routes.iter().enumerate().collect();
    let walked = parallel::map_all(&root_routes, |(i, root_route)| {
        let mut walk = InclusionWalk::new(depth, edges, *i, root_route);
        let hosts: Arc<[HostPattern]> = root_route.hosts.into();
        // The root has no parent, so no conflict is possible.
        if let Ok(merged) = start.merge(root_route.route, &hosts) {
            walk.serve(root_route.route, merged.states);
        }
        (walk.result, walk.paths)
    });
    let (walks, paths): (_, Vec<_>) = walked.into_iter().unzip();
    Walked { walks, paths: paths.into_iter().flatten().collect() }
}

/// A walk down from one root route.
struct InclusionWalk<'r> {
    depth: usize,
    edges: &'r Edges<'r>,
    root_route: usize,
    listener: (&'r ObjectKey, &'r str),
    stack: Vec<(&'r GatewayRoute, usize)>,
    /// Attempts to attach, by child.
    attempts: HashMap<ObjectRef, usize>,
    /// Number of matches, by child, parent and slot.
    matches: HashMap<(ObjectRef, ObjectRef, usize), usize>,
    /// Number of matches of all attached children.
    matches_below: usize,
    /// Number of matches of all children, rejected ones included.
    evaluated: usize,
    result: WalkResult,
    paths: Vec<InclusionPath<'r>>,
}

impl<'r> InclusionWalk<'r> {
    fn new(depth: usize, edges: &'r Edges<'r>, i: usize, root_route: &'r RootRoute<'r>) -> Self {
        InclusionWalk {
            depth,
            edges,
            root_route: i,
            listener: (root_route.gateway, &root_route.section),
            stack: Vec::new(),
            attempts: HashMap::new(),
            matches: HashMap::new(),
            matches_below: 0,
            evaluated: 0,
            result: WalkResult { rules: Vec::with_capacity(root_route.route.rules.len()), ..WalkResult::default() },
            paths: Vec::new(),
        }
    }

    /// The listener, for messages.
    fn listener(&self) -> String {
        format!("{}#{}", self.listener.0, self.listener.1)
    }

    /// Emits the rules of a route, merged with the levels above, and walks down its slots.
    fn serve(&mut self, route: &'r GatewayRoute, states: Vec<LevelState>) {
        let parent = self.edges.parent(route);
        for (rule, state) in states.into_iter().enumerate().filter(|(_, state)| !state.alternatives.is_empty()) {
            let slot = parent.and_then(|parent| parent.slots.get(rule)?.as_ref());
            let outcome = match slot {
                None if parent.is_some_and(|parent| parent.invalid.contains(&rule)) => RuleOutcome::NoBackend,
                None => RuleOutcome::Serve,
                Some((slot, candidates)) => {
                    self.stack.push((route, rule));
                    let attached = self.attach_children(slot, candidates, &state);
                    self.stack.pop();
                    if attached { RuleOutcome::NoChild } else { RuleOutcome::NoBackend }
                }
            };
            self.result.rules.push(state.into_rule(outcome));
        }
    }

    /// Attaches all children that the slot accepts; false if there is none.
    fn attach_children(&mut self, slot: &Slot<'_>, candidates: &'r [ChildCandidate<'r>], state: &LevelState) -> bool {
        let mut attached = false;
        let mut older_matches = OlderMatches::default();
        for candidate in candidates {
            let attempts = self.attempts.entry(candidate.route.object()).or_default();
            *attempts += 1;
            let merged = match (*attempts).cmp(&(MAX_PATHS + 1)) {
                Ordering::Less => self.attach(slot, candidate, state),
                Ordering::Equal => {
                    self.result.is_limited = true;
                    let message = format!("more than {MAX_PATHS} paths lead to it from {}", self.listener());
                    Err(ChildRejection::Depth(message))
                }
                // Already reported once.
                Ordering::Greater => continue,
            };
            let result = merged.as_ref().map(|merged| merged.hosts.clone()).map_err(Clone::clone);
            let notes = match &merged {
                Ok(merged) => {
                    merged.notes.iter().cloned().chain(older_matches.shadowed(candidate.route, &merged.hosts)).collect()
                }
                Err(_) => Vec::new(),
            };
            let dropped = merged.as_ref().map(|merged| merged.dropped.clone()).unwrap_or_default();
            let (child, references) = (candidate.route, candidate.references.as_slice());
            self.paths.push(InclusionPath {
                root_route: self.root_route,
                slots: self.stack.clone(),
                child,
                references,
                result,
                notes,
                dropped,
            });
            if let Ok(merged) = merged {
                attached = true;
                self.serve(child, merged.states);
            }
        }
        attached
    }

    /// Merges a child with the slot at the top of the stack.
    ///
    /// # Errors
    /// Why the child cannot attach.
    fn attach(
        &mut self,
        slot: &Slot<'_>,
        candidate: &ChildCandidate<'_>,
        state: &LevelState,
    ) -> Result<MergedChild, ChildRejection> {
        let child = candidate.route;
        let is_child = |route: &GatewayRoute| (route.kind, &route.meta.key) == (child.kind, &child.meta.key);
        if self.stack.iter().any(|(route, _)| is_child(route)) {
            let routes = self.stack.iter().map(|(route, _)| route_name(route)).chain([route_name(child)]);
            let path: Vec<_> = [self.listener()].into_iter().chain(routes).collect();
            return Err(ChildRejection::Cycle(path.join(" -> ")));
        }
        if self.stack.len() >= self.depth {
            let (routes, most) = (self.stack.len() + 1, self.depth);
            let message = format!("route {routes} on the path from {}; at most {most} are allowed", self.listener());
            return Err(ChildRejection::Depth(message));
        }
        if slot.redirects {
            return Err(ChildRejection::Filter("RequestRedirect in a rule with a slot".to_owned()));
        }
        let hosts = narrow(&state.hosts, &child.hostnames)?;
        let Some((parent, rule)) = self.stack.last() else { return state.merge(child, &hosts) };
        // The matches that the child adds below the slot. Those of a rejected child do not count.
        let key = (child.object(), parent.object(), *rule);
        let sum = self.matches.entry(key).or_default();
        let added: usize = child.rules.iter().map(|rule| rule.matches.len() * state.alternatives.len()).sum();
        if *sum + added > MAX_MATCHES {
            let message = format!("{} matches with those of the slot; at most {MAX_MATCHES} are allowed", *sum + added);
            return Err(unsupported(message));
        }
        if self.matches_below + added > MAX_MATCHES_BELOW {
            self.result.is_limited = true;
            return Err(unsupported(format!("with it more than {MAX_MATCHES_BELOW} matches would be below one route")));
        }
        self.evaluated += added;
        *self.result.evaluated.entry(child.object()).or_default() += added;
        if self.evaluated > MAX_EVALUATED {
            self.result.is_limited = true;
            let message = format!("more than {MAX_EVALUATED} matches of routes would be evaluated below one route");
            return Err(unsupported(message));
        }
        let merged = state.merge(child, &hosts)?;
        *sum += added;
        self.matches_below += added;
        Ok(merged)
    }
}

fn unsupported(message: String) -> ChildRejection {
    ChildRejection::Unsupported("UnsupportedValue".to_owned(), message)
}

/// Merged conditions, filters and settings of the levels from the listener down.
#[derive(Clone)]
struct LevelState {
    levels: Vec<Level>,
    hosts: Arc<[HostPattern]>,
    alternatives: Vec<Alternative>,
    filters: Vec<AuthoredFilter>,
    request_timeout: Option<Duration>,
    backend_timeout: Option<Duration>,
    retry: Option<Retry>,
    /// True if a level has a filter that replaces the prefix: lower levels extend the match, but not that prefix.
    prefix_replaced: bool,
}

/// A child merged with the slot above.
struct MergedChild {
    hosts: Arc<[HostPattern]>,
    /// One for each of its rules.
    states: Vec<LevelState>,
    notes: Vec<String>,
    dropped: Dropped,
}

impl LevelState {
    /// The state above the first level: everything matches.
    fn start() -> Self {
        let any = Alternative {
            matcher: RequestMatcher::default(),
            prefix: "/".into(),
            order: Vec::new(),
            built: OnceLock::new(),
            position: OnceLock::new(),
        };
        LevelState { alternatives: vec![any], ..LevelState::empty() }
    }

    fn empty() -> Self {
        LevelState {
            levels: Vec::new(),
            hosts: Arc::default(),
            alternatives: Vec::new(),
            filters: Vec::new(),
            request_timeout: None,
            backend_timeout: None,
            retry: None,
            prefix_replaced: false,
        }
    }

    /// Merges a route, served on these hosts, with this state.
    ///
    /// # Errors
    /// The route cannot be merged, or none of its rules can match.
    fn merge(&self, route: &Arc<GatewayRoute>, hosts: &Arc<[HostPattern]>) -> Result<MergedChild, ChildRejection> {
        // Filters are checked before matches, as there are few filters and many matches.
        let filters = route.rules.iter().enumerate().map(|(i, rule)| {
            // Unsupported values are reported with the route's own validity; the rule serves nothing.
            let is_supported = rule.unsupported.is_empty();
            let chain = is_supported.then(|| filters::chain(&self.filters, route, &rule.filters)).transpose();
            chain.map_err(|what| ChildRejection::Filter(format!("rule {i}: {what}")))
        });
        let filters = filters.collect::<Result<Vec<_>, ChildRejection>>()?;
        let (mut notes, mut dropped) = (Vec::new(), Dropped::new());
        let mut states = Vec::with_capacity(filters.len());
        for (i, filters) in filters.into_iter().enumerate() {
            let empty = || self.empty_rule(route, i, hosts);
            let state = match filters {
                None => empty(),
                Some(filters) => self.rule(route, i, empty(), filters, &mut notes).unwrap_or_else(|what| {
                    dropped.insert(i, what);
                    empty()
                }),
            };
            states.push(state);
        }
        if states.iter().all(|state| state.alternatives.is_empty()) {
            if !dropped.is_empty() {
                let words = dropped.iter().map(|(i, what)| format!("rule {i}: {what}"));
                return Err(unsupported(words.chain(notes).collect::<Vec<_>>().join("; ")));
            }
            if !notes.is_empty() {
                return Err(ChildRejection::Match(notes.join("; ")));
            }
        }
        Ok(MergedChild { hosts: hosts.clone(), states, notes, dropped })
    }

    /// The state of a rule that serves nothing.
    fn empty_rule(&self, route: &Arc<GatewayRoute>, i: usize, hosts: &Arc<[HostPattern]>) -> LevelState {
        let level = Level { route: route.clone(), rule: i, hosts: hosts.clone() };
        let levels = self.levels.iter().cloned().chain([level]).collect();
        LevelState { levels, hosts: hosts.clone(), ..LevelState::empty() }
    }

    /// Merges a rule with this state; `empty` is its state without matches.
    ///
    /// # Errors
    /// The rule's unsupported value.
    fn rule(
        &self,
        route: &Arc<GatewayRoute>,
        i: usize,
        empty: LevelState,
        filters: Vec<AuthoredFilter>,
        notes: &mut Vec<String>,
    ) -> Result<LevelState, String> {
        let Some(rule) = route.rules.get(i) else { return Ok(empty) };
        let mut alternatives = Vec::with_capacity(self.alternatives.len() * rule.matches.len());
        for above in &self.alternatives {
            for (j, own) in rule.matches.iter().enumerate() {
                match combine(route.kind, &above.matcher, own) {
                    Ok(matcher) => {
                        let prefix = if self.prefix_replaced { above.prefix.clone() } else { prefix(&matcher) };
                        let order = above.order.iter().cloned().chain([LevelKey::new(route, i, j, own)]).collect();
                        let (built, position) = (OnceLock::new(), OnceLock::new());
                        alternatives.push(Alternative { matcher, prefix, order, built, position });
                    }
                    Err(Mismatch::Empty(what)) => {
                        notes.push(format!("match {j} of rule {i} can match no request: {what}"))
                    }
                    Err(Mismatch::Unsupported(what)) => return Err(what),
                }
            }
        }
        Ok(LevelState {
            alternatives,
            filters,
            request_timeout: filters::shorter(self.request_timeout, rule.request_timeout),
            backend_timeout: filters::shorter(self.backend_timeout, rule.backend_timeout),
            retry: rule.retry.clone().or_else(|| self.retry.clone()),
            prefix_replaced: self.prefix_replaced || rule.filters.iter().any(replaces_prefix),
            ..empty
        })
    }

    fn into_rule(self, outcome: RuleOutcome) -> EffectiveRule {
        let LevelState { levels, alternatives, filters, request_timeout, backend_timeout, retry, .. } = self;
        EffectiveRule { levels, alternatives, filters, request_timeout, backend_timeout, retry, outcome }
    }
}

/// The intersection of a slot's hosts with a child's.
fn narrow(above: &Arc<[HostPattern]>, own: &[HostPattern]) -> Result<Arc<[HostPattern]>, ChildRejection> {
    if own.is_empty() {
        return Ok(above.clone());
    }
    let mut hosts: Vec<_> = above.iter().flat_map(|above| own.iter().filter_map(|own| above.intersect(own))).collect();
    hosts.sort();
    hosts.dedup();
    if hosts.is_empty() {
        let verb = if own.len() == 1 { "does" } else { "do" };
        return Err(ChildRejection::Host(format!("{} {verb} not intersect {}", list(own), list(above))));
    }
    Ok(hosts.into())
}

fn list(hosts: &[HostPattern]) -> String {
    const MOST: usize = 3;
    let shown: Vec<_> = hosts.iter().take(MOST).map(ToString::to_string).collect();
    match hosts.len() {
        n if n > MOST => format!("{} and {} more", shown.join(", "), n - MOST),
        _ => shown.join(", "),
    }
}

fn prefix(matcher: &RequestMatcher) -> Arc<str> {
    match &matcher.path {
        PathMatcher::Prefix(path) | PathMatcher::Exact(path) => path.clone(),
        PathMatcher::Regex(_) => "/".into(),
    }
}

fn replaces_prefix(filter: &Filter) -> bool {
    let path = match filter {
        Filter::Rewrite(rewrite) => &rewrite.path,
        Filter::Redirect(redirect) => &redirect.path,
        _ => return false,
    };
    matches!(path, Some(PathModifier::Prefix(_)))
}

/// Matches of the older children of a slot, by host and canonical match.
#[derive(Default)]
struct OlderMatches(BTreeMap<(HostPattern, String), (String, Created)>);

impl OlderMatches {
    /// Records a child's matches, and returns a note for each that older children shadow on all hosts.
    fn shadowed(&mut self, child: &GatewayRoute, hosts: &[HostPattern]) -> Vec<String> {
        let mut notes = Vec::new();
        let mut own = Vec::new();
        for (i, rule) in child.rules.iter().enumerate() {
            for (j, matcher) in rule.matches.iter().enumerate() {
                let text = canonical(matcher);
                let keys: Vec<_> = hosts.iter().map(|host| (host.clone(), text.clone())).collect();
                let winners: Option<Vec<_>> = keys.iter().map(|key| self.0.get(key)).collect();
                if let Some((winner, created)) = winners.and_then(|winners| winners.first().copied()) {
                    let words = created.seniority(child.meta.created).words();
                    notes.push(format!("match {j} of rule {i} is shadowed by that of {winner}, which {words}"));
                }
                own.extend(keys);
            }
        }
        for key in own {
            self.0.entry(key).or_insert_with(|| (route_name(child), child.meta.created));
        }
        notes
    }
}

/// The slots of an inclusion path, in a message.
pub fn via(slots: &[(&GatewayRoute, usize)]) -> String {
    slots.iter().map(|(route, rule)| rule_name(route, *rule)).collect::<Vec<_>>().join(" ▸ ")
}
