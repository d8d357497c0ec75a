//! Walks from each listener down the slots to all attached children.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use router_api::gateway_api::types::{Filter, GatewayRoute};
use router_api::redirect::PathModifier;
use router_model::object::{Created, ObjectKey, ObjectRef};
use router_model::parallel;
use router_table::host_pattern::HostPattern;
use router_table::matchers::{PathMatcher, RequestMatcher};
use router_table::rule::Retry;

use super::edges::{ChildCandidate, Edges, Refusal, name, reference_of, rule_name};
use super::filters;
use super::matches::{Mismatch, canonical, combine};
use super::slots::Slot;
use crate::gateway::inclusion::level_key::LevelKey;
use crate::gateway::inclusion::types::{
    Alternative, AuthoredFilter, Context, EffectiveRule, Level, RootRoute, RuleOutcome,
};

/// Maximum number of matches of one child below one slot, summed over its rules and all ways to the slot.
const MOST_MATCHES: usize = 1024;
/// Maximum number of matches of all children below one root route. A child of many slots counts in each of them;
/// without a limit, a few routes could expand to millions of rules.
const MOST_BELOW: usize = 16_384;
/// Maximum number of matches evaluated below one root route, including those of children that are then rejected.
const MOST_LOOKED_AT: usize = 16 * MOST_BELOW;
/// Maximum number of ways from one root route to one route. Real trees need a few; without a limit, some tens of routes
/// that all name each other would keep the engine busy for ever.
const MOST_WAYS: usize = 64;

/// Result of a walk.
pub struct WalkResult<'r> {
    /// The rules of each root route.
    pub rules: Vec<Vec<EffectiveRule>>,
    /// Every attempt to attach a child to a slot, in the order of the walk.
    pub ways: Vec<InclusionPath<'r>>,
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
    pub result: Result<Arc<[HostPattern]>, Refusal>,
    /// Notes on parts of the child that have no effect there.
    pub notes: Vec<String>,
    /// Rules dropped there because of unsupported values.
    pub dropped: Dropped,
}

/// Unsupported values, by index of the rule.
pub type Dropped = BTreeMap<usize, String>;

/// Walks down from every root route.
pub fn walk<'r>(context: &Context<'_>, edges: &'r Edges<'r>, root_routes: &'r [RootRoute<'r>]) -> WalkResult<'r> {
    let depth = context.max_depth.routes();
    let start = LevelState::start();
    let root_routes: Vec<_> = root_routes.iter().enumerate().collect();
    let walked = parallel::map_all(&root_routes, |(i, root_route)| {
        let mut walk = InclusionWalk::new(depth, edges, *i, root_route);
        let hosts: Arc<[HostPattern]> = root_route.hosts.into();
        // The root has no parent, so nothing can conflict.
        if let Ok(below) = start.below(root_route.route, &hosts) {
            walk.serve(root_route.route, below.states);
        }
        (walk.rules, walk.ways)
    });
    let (rules, ways): (_, Vec<_>) = walked.into_iter().unzip();
    WalkResult { rules, ways: ways.into_iter().flatten().collect() }
}

/// A walk down from one root route.
struct InclusionWalk<'r> {
    depth: usize,
    edges: &'r Edges<'r>,
    root_route: usize,
    listener: (&'r ObjectKey, &'r str),
    stack: Vec<(&'r GatewayRoute, usize)>,
    /// Attempts to attach, by child.
    tries: HashMap<ObjectRef, usize>,
    /// Number of matches, by child, parent and slot.
    matches: HashMap<(ObjectRef, ObjectRef, usize), usize>,
    /// Number of matches of all attached children.
    below: usize,
    /// The same, including children that were rejected.
    looked_at: usize,
    rules: Vec<EffectiveRule>,
    ways: Vec<InclusionPath<'r>>,
}

impl<'r> InclusionWalk<'r> {
    fn new(depth: usize, edges: &'r Edges<'r>, i: usize, root_route: &'r RootRoute<'r>) -> Self {
        InclusionWalk {
            depth,
            edges,
            root_route: i,
            listener: (root_route.gateway, &root_route.section),
            stack: Vec::new(),
            tries: HashMap::new(),
            matches: HashMap::new(),
            below: 0,
            looked_at: 0,
            rules: Vec::with_capacity(root_route.route.rules.len()),
            ways: Vec::new(),
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
                None if parent.is_some_and(|parent| parent.broken.contains(&rule)) => RuleOutcome::NoBackend,
                None => RuleOutcome::Serve,
                Some((slot, candidates)) => {
                    self.stack.push((route, rule));
                    let attached = self.fill(slot, candidates, &state);
                    self.stack.pop();
                    if attached { RuleOutcome::NoChild } else { RuleOutcome::NoBackend }
                }
            };
            self.rules.push(state.into_rule(outcome));
        }
    }

    /// Attaches all children that the slot accepts. `false` if there is none.
    fn fill(&mut self, slot: &Slot<'_>, candidates: &'r [ChildCandidate<'r>], state: &LevelState) -> bool {
        let mut attached = false;
        let mut taken = OlderMatches::default();
        for candidate in candidates {
            let tries = self.tries.entry(reference_of(candidate.route)).or_default();
            *tries += 1;
            let below = match (*tries).cmp(&(MOST_WAYS + 1)) {
                Ordering::Less => self.attach(slot, candidate, state),
                Ordering::Equal => {
                    let message = format!("more than {MOST_WAYS} paths lead to it from {}", self.listener());
                    Err(Refusal::Depth(message))
                }
                // Already reported once.
                Ordering::Greater => continue,
            };
            let result = below.as_ref().map(|below| below.hosts.clone()).map_err(Clone::clone);
            let notes = match &below {
                Ok(below) => below.notes.iter().cloned().chain(taken.shadowed(candidate.route, &below.hosts)).collect(),
                Err(_) => Vec::new(),
            };
            let dropped = below.as_ref().map(|below| below.dropped.clone()).unwrap_or_default();
            let (child, references) = (candidate.route, candidate.references.as_slice());
            self.ways.push(InclusionPath {
                root_route: self.root_route,
                slots: self.stack.clone(),
                child,
                references,
                result,
                notes,
                dropped,
            });
            if let Ok(below) = below {
                attached = true;
                self.serve(child, below.states);
            }
        }
        attached
    }

    /// Whether a child can attach to the slot at the top of the stack.
    fn attach(
        &mut self,
        slot: &Slot<'_>,
        candidate: &ChildCandidate<'_>,
        state: &LevelState,
    ) -> Result<Below, Refusal> {
        let child = candidate.route;
        let is_child = |route: &GatewayRoute| (route.kind, &route.meta.key) == (child.kind, &child.meta.key);
        if self.stack.iter().any(|(route, _)| is_child(route)) {
            let routes = self.stack.iter().map(|(route, _)| name(route)).chain([name(child)]);
            let way: Vec<_> = [self.listener()].into_iter().chain(routes).collect();
            return Err(Refusal::Cycle(way.join(" -> ")));
        }
        if self.stack.len() >= self.depth {
            let (routes, most) = (self.stack.len() + 1, self.depth);
            let message = format!("route {routes} on the path from {}; at most {most} are allowed", self.listener());
            return Err(Refusal::Depth(message));
        }
        if slot.redirects {
            return Err(Refusal::Filter("RequestRedirect in a rule with a slot".to_owned()));
        }
        let hosts = narrow(&state.hosts, &child.hostnames)?;
        let Some((parent, rule)) = self.stack.last() else { return state.below(child, &hosts) };
        // The matches that the child adds below the slot. Those of a rejected child do not count.
        let key = (reference_of(child), reference_of(parent), *rule);
        let sum = self.matches.entry(key).or_default();
        let added: usize = child.rules.iter().map(|rule| rule.matches.len() * state.alternatives.len()).sum();
        if *sum + added > MOST_MATCHES {
            let message =
                format!("{} matches with those of the slot; at most {MOST_MATCHES} are allowed", *sum + added);
            return Err(unsupported(message));
        }
        if self.below + added > MOST_BELOW {
            return Err(unsupported(format!("with it more than {MOST_BELOW} matches would be below one route")));
        }
        self.looked_at += added;
        if self.looked_at > MOST_LOOKED_AT {
            let message = format!("more than {MOST_LOOKED_AT} matches of routes would be evaluated below one route");
            return Err(unsupported(message));
        }
        let below = state.below(child, &hosts)?;
        *sum += added;
        self.below += added;
        Ok(below)
    }
}

fn unsupported(message: String) -> Refusal {
    Refusal::Unsupported("UnsupportedValue".to_owned(), message)
}

/// Everything that the levels from the listener down say.
#[derive(Clone)]
struct LevelState {
    levels: Vec<Level>,
    hosts: Arc<[HostPattern]>,
    alternatives: Vec<Alternative>,
    filters: Vec<AuthoredFilter>,
    request_timeout: Option<Duration>,
    backend_timeout: Option<Duration>,
    retry: Option<Retry>,
    /// A level has replaced the prefix: lower levels extend the match, but not the replaced prefix.
    replaced: bool,
}

/// A child merged with the slot above.
struct Below {
    hosts: Arc<[HostPattern]>,
    /// One for each of its rules.
    states: Vec<LevelState>,
    notes: Vec<String>,
    dropped: Dropped,
}

impl LevelState {
    /// The state above the first level: everything matches.
    fn start() -> Self {
        let any = Alternative { matcher: RequestMatcher::default(), prefix: "/".into(), order: Vec::new() };
        LevelState { alternatives: vec![any], ..LevelState::nothing() }
    }

    fn nothing() -> Self {
        LevelState {
            levels: Vec::new(),
            hosts: Arc::default(),
            alternatives: Vec::new(),
            filters: Vec::new(),
            request_timeout: None,
            backend_timeout: None,
            retry: None,
            replaced: false,
        }
    }

    /// Merges a route, served on these hosts, with this state.
    fn below(&self, route: &Arc<GatewayRoute>, hosts: &Arc<[HostPattern]>) -> Result<Below, Refusal> {
        // Filters are checked before matches, as there are few filters and many matches.
        let filters = route.rules.iter().enumerate().map(|(i, rule)| {
            // Unsupported values are reported with the route's own validity; the rule serves nothing.
            let is_done = rule.unsupported.is_empty();
            let chain = is_done.then(|| filters::chain(&self.filters, route, &rule.filters)).transpose();
            chain.map_err(|what| Refusal::Filter(format!("rule {i}: {what}")))
        });
        let filters = filters.collect::<Result<Vec<_>, Refusal>>()?;
        let (mut notes, mut dropped) = (Vec::new(), Dropped::new());
        let mut states = Vec::with_capacity(filters.len());
        for (i, filters) in filters.into_iter().enumerate() {
            let nothing = || self.serving_nothing(route, i, hosts);
            let state = match filters {
                None => nothing(),
                Some(filters) => self.rule(route, i, nothing(), filters, &mut notes).unwrap_or_else(|what| {
                    dropped.insert(i, what);
                    nothing()
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
                return Err(Refusal::Match(notes.join("; ")));
            }
        }
        Ok(Below { hosts: hosts.clone(), states, notes, dropped })
    }

    /// The state of a rule that serves nothing.
    fn serving_nothing(&self, route: &Arc<GatewayRoute>, i: usize, hosts: &Arc<[HostPattern]>) -> LevelState {
        let level = Level { route: route.clone(), rule: i, hosts: hosts.clone() };
        let levels = self.levels.iter().cloned().chain([level]).collect();
        LevelState { levels, hosts: hosts.clone(), ..LevelState::nothing() }
    }

    /// Merges a rule with this state; `nothing` is its state without matches.
    ///
    /// # Errors
    /// The rule's unsupported value.
    fn rule(
        &self,
        route: &Arc<GatewayRoute>,
        i: usize,
        nothing: LevelState,
        filters: Vec<AuthoredFilter>,
        notes: &mut Vec<String>,
    ) -> Result<LevelState, String> {
        let Some(rule) = route.rules.get(i) else { return Ok(nothing) };
        let mut alternatives = Vec::with_capacity(self.alternatives.len() * rule.matches.len());
        for above in &self.alternatives {
            for (j, own) in rule.matches.iter().enumerate() {
                match combine(route.kind, &above.matcher, own) {
                    Ok(matcher) => {
                        let prefix = if self.replaced { above.prefix.clone() } else { prefix(&matcher) };
                        let order = above.order.iter().cloned().chain([LevelKey::new(route, i, j, own)]).collect();
                        alternatives.push(Alternative { matcher, prefix, order });
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
            replaced: self.replaced || rule.filters.iter().any(replaces_prefix),
            ..nothing
        })
    }

    fn into_rule(self, outcome: RuleOutcome) -> EffectiveRule {
        let LevelState { levels, alternatives, filters, request_timeout, backend_timeout, retry, .. } = self;
        EffectiveRule { levels, alternatives, filters, request_timeout, backend_timeout, retry, outcome }
    }
}

/// The intersection of a slot's hosts with a child's.
fn narrow(above: &Arc<[HostPattern]>, own: &[HostPattern]) -> Result<Arc<[HostPattern]>, Refusal> {
    if own.is_empty() {
        return Ok(above.clone());
    }
    let mut hosts: Vec<_> = above.iter().flat_map(|above| own.iter().filter_map(|own| above.intersect(own))).collect();
    hosts.sort();
    hosts.dedup();
    if hosts.is_empty() {
        let verb = if own.len() == 1 { "does" } else { "do" };
        return Err(Refusal::Host(format!("{} {verb} not intersect {}", list(own), list(above))));
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
            self.0.entry(key).or_insert_with(|| (name(child), child.meta.created));
        }
        notes
    }
}

/// The slots of a way, in a message.
pub fn via(slots: &[(&GatewayRoute, usize)]) -> String {
    slots.iter().map(|(route, rule)| rule_name(route, *rule)).collect::<Vec<_>>().join(" ▸ ")
}
