//! Why a URL or a server name is served by what it is served by, or by nothing: the decisions in their order, as data.
//!
//! This asks the same table that traffic asks, and tells what traffic does not need to know: what came close, who lost
//! and to whom, and what to change. It names routes of every namespace, so it is for operators.

pub mod asked;
pub mod backends;
pub mod data_path;
pub mod explanation;
pub mod facts;
mod filter;
mod follow;
pub mod found;
mod hosts;
pub mod outcome;
mod owners;
pub mod query;
pub mod settings;
mod sites;
mod text;

use crate::explain::explanation::Explanation;
use crate::explain::facts::Facts;
use crate::explain::query::Query;

/// Explains what happens to a query. Pure: the data path's part is added by whoever runs one.
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
            follow::follow(facts, router, query, &mut explanation);
        }
        None => hosts::no_listener(facts, query, &mut explanation),
    }
    explanation
}

#[cfg(test)]
mod tests;
