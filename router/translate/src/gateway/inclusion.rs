//! HTTPRoute inclusion (`docs/inclusion.md`): a rule of a route can be a *slot*, to which child routes attach. The tree
//! is flattened into effective rules. In their order, the first match is the rule that a walk down the tree would find.
//!
//! Routes without slots are unchanged, in the order that the API defines.

pub(crate) mod edges;
pub(crate) mod filters;
pub mod level_key;
pub(crate) mod matches;
pub(crate) mod order;
pub mod slot_problem;
pub(crate) mod slot_validation;
pub(crate) mod slots;
pub(crate) mod status;
pub mod types;
pub(crate) mod walk;

use crate::gateway::inclusion::types::{Context, Expanded, RootRoute};

/// Expands the slots of routes attached to listeners, down to the last child. The result does not depend on the order
/// of objects.
pub fn expand(context: &Context<'_>, root_routes: &[RootRoute<'_>]) -> Expanded {
    let slots = slots::SlotResolver::new(context.resources);
    let edges = edges::Edges::new(context, &slots);
    let walked = walk::walk(context, &edges, root_routes);
    let fragments = status::fragments(context, &edges, root_routes, &walked.paths);
    Expanded { walks: walked.walks, fragments }
}

#[cfg(test)]
mod properties;
