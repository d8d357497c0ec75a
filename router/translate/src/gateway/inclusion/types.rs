//! Inputs and results of inclusion.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use router_api::gateway_api::types::{Filter, GatewayRoute, RouteRule};
use router_api::resources::Resources;
use router_model::object::{ObjectKey, ObjectRef};
use router_table::host_pattern::HostPattern;
use router_table::matchers::RequestMatcher;
use router_table::rule::{Retry, Rule};
use serde_json::Value;

use crate::gateway::inclusion::level_key::LevelKey;
use crate::settings::MaxDepth;
use crate::status::condition::Condition;
use crate::status::object_status::ParentStatus;

/// Inputs of inclusion.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// All objects.
    pub resources: &'c Resources,
    /// Maximum depth of a tree.
    pub max_depth: MaxDepth,
    /// Gateways of accepted classes; statuses have rows only for edges that one of them reaches.
    pub gateways: &'c BTreeMap<ObjectKey, usize>,
    /// Reason and message of `Accepted` if a route is rejected for every parent.
    pub rejection: &'c dyn Fn(&GatewayRoute) -> Option<(String, String)>,
    /// Routes whose fragments are needed.
    pub is_reported: &'c dyn Fn(&ObjectRef) -> bool,
}

/// A route attached to a listener of a Gateway.
#[derive(Clone, Debug)]
pub struct RootRoute<'t> {
    /// The Gateway.
    pub gateway: &'t ObjectKey,
    /// The listener's name.
    pub section: Arc<str>,
    /// The route.
    pub route: &'t Arc<GatewayRoute>,
    /// Index of its `parentRefs` entry that names the listener.
    pub parent: usize,
    /// The intersection of its hosts with the listener's hostname; not empty.
    pub hosts: &'t [HostPattern],
}

/// Result of inclusion.
#[derive(Debug, Default)]
pub struct Expanded {
    /// What is below each root route, in the order of root routes.
    pub walks: Vec<WalkResult>,
    /// Status fragments that inclusion adds to routes.
    pub fragments: BTreeMap<ObjectRef, Fragment>,
}

/// Rules of a root route and of all routes below it.
#[derive(Debug, Default)]
pub struct WalkResult {
    /// Its rules.
    pub rules: Vec<EffectiveRule>,
    /// Matches evaluated, by child.
    pub evaluated: BTreeMap<ObjectRef, usize>,
    /// True if a limit on all paths or matches below the root route rejected a child.
    pub is_limited: bool,
}

/// A rule merged with the slots above it, or the fallback of a slot.
#[derive(Clone, Debug)]
pub struct EffectiveRule {
    /// Routes and rules from the listener down, at least one; the backends of the last one serve.
    pub levels: Vec<Level>,
    /// Matches: a request needs to match any one of them.
    pub alternatives: Vec<Alternative>,
    /// Filters in order, each with the route that defines it; references resolve from that route.
    pub filters: Vec<AuthoredFilter>,
    /// The shortest `request` time-out of all levels.
    pub request_timeout: Option<Duration>,
    /// The shortest `backendRequest` time-out of all levels.
    pub backend_timeout: Option<Duration>,
    /// `retry` of the lowest level that sets it.
    pub retry: Option<Retry>,
    /// How requests are answered.
    pub outcome: RuleOutcome,
}

/// One step from a listener to a backend.
#[derive(Clone, Debug)]
pub struct Level {
    /// The route.
    pub route: Arc<GatewayRoute>,
    /// Index of the rule.
    pub rule: usize,
    /// Its hosts here: the intersection with the hosts of the level above.
    pub hosts: Arc<[HostPattern]>,
}

/// One alternative of an effective rule.
#[derive(Clone, Debug)]
pub struct Alternative {
    /// All of its conditions must hold.
    pub matcher: RequestMatcher,
    /// The path that a prefix replacement replaces: the one matched down to the level of the filter.
    pub prefix: Arc<str>,
    /// Precedence, level by level.
    pub order: Vec<LevelKey>,
    /// Its rule in the table, once it has been built.
    pub built: OnceLock<Arc<Rule>>,
    /// Its position among the rules of the host for which it was first ordered.
    pub position: OnceLock<usize>,
}

/// A filter with the route that defines it.
#[derive(Clone, Debug)]
pub struct AuthoredFilter {
    /// The route whose rule defines the filter.
    pub author: Arc<GatewayRoute>,
    /// The filter.
    pub filter: Filter,
}

/// How the requests of an effective rule are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleOutcome {
    /// By the filters and backends of the last level.
    Serve,
    /// 404: the fallback of a slot with children, none of which matches. No other rule is tried.
    NoChild,
    /// 500: a slot without attached children, or an invalid slot (see `slot_validation`); answered as if no backend
    /// were usable.
    NoBackend,
}

impl EffectiveRule {
    /// The last level, whose backends serve. Always present: there is at least one level.
    pub fn leaf(&self) -> Option<&Level> {
        self.levels.last()
    }

    /// The hosts that it serves.
    pub fn hosts(&self) -> &[HostPattern] {
        self.leaf().map_or(&[], |level| &level.hosts)
    }

    /// A listener, and the routes and rules that the rule is built from, for `explain`:
    /// `Gateway shop/public#web ▸ HTTPRoute shop/store/teams ▸ HTTPRoute red/cart/0`.
    pub fn origin(&self, listener: &str) -> String {
        let mut text = String::with_capacity(listener.len() + 64 * self.levels.len());
        text.push_str(listener);
        for Level { route, rule, .. } in &self.levels {
            // Writing to a `String` never fails.
            let _ = write!(text, " ▸ {} {}/", route.kind, route.meta.key);
            let _ = match route.rules.get(*rule).and_then(|rule| rule.name.as_ref()) {
                Some(name) => text.write_str(name),
                None => write!(text, "{rule}"),
            };
        }
        text
    }
}

impl Level {
    /// The rule.
    pub fn rule(&self) -> Option<&RouteRule> {
        self.route.rules.get(self.rule)
    }
}

/// What inclusion adds to an object's status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fragment {
    /// For a child: rows of `status.parents`, those of its own `parentRefs` first.
    pub rows: Vec<IncludedRow>,
    /// For a parent whose CRD has the field: `inclusions`, by index of the `parentRefs` entry that names a Gateway.
    pub inclusions: BTreeMap<usize, Value>,
    /// For a parent: its entries of `status.inclusions` of the RouteSlots that it names.
    pub slots: BTreeMap<ObjectKey, Vec<Value>>,
}

/// A row of a child's `status.parents`. The route's own condition `ResolvedRefs` is added to it.
#[derive(Clone, Debug, PartialEq)]
pub struct IncludedRow {
    /// The parent of the row.
    pub parent: RowParent,
    /// Condition `Accepted`.
    pub accepted: Condition,
    /// Rules that are dropped on some path to the child, with the unsupported values.
    pub dropped: BTreeMap<usize, BTreeSet<String>>,
    /// `inclusions` and `inclusionPaths`, if the CRD has them.
    pub members: Vec<(&'static str, Value)>,
    /// Short form of the row, for `sluice get`.
    pub summary: ParentStatus,
}

/// The parent of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowParent {
    /// The `parentRefs` entry of this index; the row repeats it as written.
    Direct(usize),
    /// A listener that reaches the route only through other routes.
    Listener {
        /// The Gateway.
        gateway: ObjectKey,
        /// The listener's name.
        section: Arc<str>,
    },
}
