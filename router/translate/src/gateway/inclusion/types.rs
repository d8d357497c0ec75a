//! What inclusion is worked out from, and what comes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use router_api::gateway_api::types::{Filter, GatewayRoute, RouteRule};
use router_api::resources::Resources;
use router_model::object::{ObjectKey, ObjectRef};
use router_table::host_pattern::HostPattern;
use router_table::matchers::RequestMatcher;
use router_table::rule::Retry;
use serde_json::Value;

use crate::gateway::inclusion::level_key::LevelKey;
use crate::settings::MaxDepth;
use crate::status::condition::Condition;
use crate::status::object_status::ParentStatus;

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
pub struct RootRoute<'t> {
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
    /// A slot that no child hangs on here, or whose reference is no good (see `problems`): as if none of its
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
    pub line: ParentStatus,
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
