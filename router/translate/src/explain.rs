//! Explains how a URL or a server name is served, or why it is not: the decisions in order, as data.
//!
//! It uses the same table as the data paths, and adds near misses, objects that lost a host, and fixes. It names
//! routes of every namespace, so it is for operators only.

pub mod backends;
pub mod data_path;
pub mod explanation;
pub mod facts;
mod filter;
pub mod gate;
mod host_rules;
mod hosts;
pub mod lookup_result;
pub mod outcome;
mod owners;
pub mod query;
mod query_trace;
pub mod request;
pub mod settings;
mod text;

use crate::explain::explanation::Explanation;
use crate::explain::facts::Facts;
use crate::explain::query::Query;

/// Explains a query. A pure function: the caller adds the kernel's decision.
pub fn explain(facts: Facts<'_>, query: &Query) -> Explanation {
    let mut explanation = Explanation {
        query: query.clone(),
        router: None,
        steps: Vec::new(),
        served: false,
        verdict: String::new(),
        fix: None,
        outcome: Vec::new(),
    };
    match hosts::listener(facts, query, &mut explanation) {
        Some(router) => {
            explanation.router = Some(router.name.to_string());
            if !facts.is_guarded || gate::lets_pass(router, query.from, &mut explanation) {
                query_trace::trace(facts, router, query, &mut explanation);
            }
        }
        None => hosts::no_listener(facts, query, &mut explanation),
    }
    explanation
}

#[cfg(test)]
mod tests;
