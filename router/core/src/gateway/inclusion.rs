//! HTTPRoute inclusion (`docs/inclusion.md`): a rule of a route can be a *slot*, which child routes hang on. What comes
//! out is flat: effective rules in an order in which the first match is what a walk down the tree would find.
//!
//! Routes without slots go through the same code: for them it is the identity, in the API's own order.

mod edges;
mod filters;
mod matches;
mod order;
mod problems;
mod slots;
mod status;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::gateway::spec::{Filter, GatewayRoute, HostPattern, RequestMatcher, RouteRule};
use crate::object::{ObjectKey, ObjectRef};
use crate::resources::Resources;
use crate::rule::Retry;
use crate::sites::Row;
use crate::status::Condition;

pub(super) use edges::{gateway_of, parent_of};
pub use order::{LevelKey, Precedence};
pub use problems::{Problem, problems, warnings};
pub use slots::is_slot;
pub use status::listener_reference;

/// How many routes may lie on one way from a listener to a backend, the first and the last included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MaxDepth(u8);

impl MaxDepth {
    /// A limit; `None` unless it is 2 to 8.
    pub fn new(routes: u8) -> Option<Self> {
        (2..=8).contains(&routes).then_some(MaxDepth(routes))
    }

    fn routes(self) -> usize {
        self.0.into()
    }
}

impl Default for MaxDepth {
    fn default() -> Self {
        MaxDepth(4)
    }
}

impl fmt::Display for MaxDepth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MaxDepth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().ok().and_then(MaxDepth::new).ok_or_else(|| "write a number from 2 to 8".to_owned())
    }
}

/// What inclusion is worked out from.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// All objects.
    pub resources: &'c Resources,
    /// How deep trees may be.
    pub max_depth: MaxDepth,
    /// The Gateways whose class is ours: rows are written for edges that lead to one of them.
    pub gateways: &'c BTreeSet<ObjectKey>,
    /// Why a route is refused wherever it hangs: reason and message of Accepted.
    pub refusal: &'c dyn Fn(&GatewayRoute) -> Option<(String, String)>,
}

/// A route that a listener of a Gateway has accepted.
#[derive(Clone, Debug)]
pub struct Top<'t> {
    /// The Gateway.
    pub gateway: &'t ObjectKey,
    /// The listener's name.
    pub section: Arc<str>,
    /// The route.
    pub route: &'t Arc<GatewayRoute>,
    /// Which of its `parentRefs` names the listener.
    pub parent: usize,
    /// Its hosts there: those of the listener that are the route's as well. At least one.
    pub hosts: Vec<HostPattern>,
}

/// What comes of routes and their children.
#[derive(Debug, Default)]
pub struct Expanded {
    /// What each of the tops serves, in their order.
    pub rules: Vec<Vec<EffectiveRule>>,
    /// What objects are told because of inclusion.
    pub told: BTreeMap<ObjectRef, Fragment>,
}

/// A rule of a route with everything that the slots above it say folded in; or what is left of a slot.
#[derive(Clone, Debug)]
pub struct EffectiveRule {
    /// Routes and rules from the listener down, at least one; the last one's backends serve.
    pub levels: Vec<Level>,
    /// What requests may be like; any one of these.
    pub alternatives: Vec<Alternative>,
    /// Filters in order, each with the route that wrote it: what it refers to is looked up from there.
    pub filters: Vec<AuthoredFilter>,
    /// The least of what the levels say.
    pub request_timeout: Option<Duration>,
    /// The least of what the levels say.
    pub backend_timeout: Option<Duration>,
    /// `retry` of the lowest level that has one.
    pub retry: Option<Retry>,
    /// What becomes of requests.
    pub outcome: Outcome,
}

/// One step from a listener to a backend.
#[derive(Clone, Debug)]
pub struct Level {
    /// The route.
    pub route: Arc<GatewayRoute>,
    /// Which of its rules.
    pub rule: usize,
    /// Its hosts here: those of what it hangs on that are its own as well.
    pub hosts: Arc<[HostPattern]>,
}

/// One alternative of an effective rule.
#[derive(Clone, Debug)]
pub struct Alternative {
    /// All of it must match.
    pub matcher: RequestMatcher,
    /// What a prefix replacement replaces: what was matched down to the level that has the filter.
    pub prefix: Arc<str>,
    /// Its place among others, level by level.
    pub order: Vec<LevelKey>,
}

/// A filter with its author.
#[derive(Clone, Debug)]
pub struct AuthoredFilter {
    /// The route whose rule has it.
    pub author: Arc<GatewayRoute>,
    /// The filter.
    pub filter: Filter,
}

/// What becomes of the requests of an effective rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Filters and backends of the last level.
    Serve,
    /// A slot, after all of its children: none wants the request, and nothing else is asked. 404.
    NoChild,
    /// A slot that no child hangs on here, or whose reference is no good (see [`problems()`]): as if none of its
    /// backends could be used. 500.
    NoBackend,
}

impl EffectiveRule {
    /// The last level: whose backends serve. `None` never happens, as there is at least one level.
    pub fn leaf(&self) -> Option<&Level> {
        self.levels.last()
    }

    /// The hosts that it serves.
    pub fn hosts(&self) -> &[HostPattern] {
        self.leaf().map_or(&[], |level| &level.hosts)
    }

    /// The routes and rules that it comes from, for `explain`: `HTTPRoute shop/store/teams ▸ HTTPRoute red/cart/0`.
    pub fn origin(&self) -> String {
        let levels = self.levels.iter().map(|Level { route, rule, .. }| {
            let (kind, key) = (route.kind, &route.meta.key);
            match route.rules.get(*rule).and_then(|rule| rule.name.as_ref()) {
                Some(name) => format!("{kind} {key}/{name}"),
                None => format!("{kind} {key}/{rule}"),
            }
        });
        levels.collect::<Vec<_>>().join(" ▸ ")
    }
}

impl Level {
    /// The rule.
    pub fn rule(&self) -> Option<&RouteRule> {
        self.route.rules.get(self.rule)
    }
}

/// What inclusion has to tell an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fragment {
    /// Of a child: rows of `status.parents`, those of its own `parentRefs` first.
    pub rows: Vec<IncludedRow>,
    /// Of a parent, where its CRD has the field: `inclusions` of the row of this one of its `parentRefs`, a Gateway.
    pub inclusions: BTreeMap<usize, Value>,
    /// Of a RouteSlot: its `status`.
    pub slot: Option<Value>,
}

/// A row of a child's `status.parents`. Its condition ResolvedRefs is the route's own and is added to it.
#[derive(Clone, Debug, PartialEq)]
pub struct IncludedRow {
    /// Whose row it is.
    pub parent: RowParent,
    /// `Accepted`.
    pub accepted: Condition,
    /// Rules that some way to it does not serve, as they ask for what is not done there, and what that is.
    pub dropped: BTreeMap<usize, BTreeSet<String>>,
    /// `inclusions` and `inclusionPaths`, where the CRD has them; they stand beside `conditions`.
    pub members: Vec<(&'static str, Value)>,
    /// The same for lists.
    pub line: Row,
}

/// Whose row it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowParent {
    /// This one of `parentRefs`: it is repeated as it was written.
    Direct(usize),
    /// A listener of a Gateway that the route is reached from only through other routes.
    Root {
        /// The Gateway.
        gateway: ObjectKey,
        /// The listener's name.
        section: Arc<str>,
    },
}

/// Follows the slots of routes that listeners have accepted, down to the last child. The result depends on the objects
/// alone, not on the order of anything.
pub fn expand(context: &Context<'_>, tops: &[Top<'_>]) -> Expanded {
    let slots = slots::Slots::new(context.resources);
    let edges = edges::Edges::new(context, &slots);
    let walked = walk::walk(context, &edges, tops);
    let told = status::told(context, &edges, tops, &walked.ways);
    Expanded { rules: walked.rules, told }
}

#[cfg(test)]
mod properties;
