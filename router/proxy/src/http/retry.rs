//! Retries that a rule requests after an endpoint may have processed a request (Gateway API, `retry`; Contour,
//! `retryPolicy`). Only idempotent requests without content are repeated, see [`is_repeatable`].

use std::time::Duration;

use http::{Request, StatusCode};
use router_access_log::Flag;
use router_table::rule::Retry;
use router_table::table::ResolvedRoute;

use super::upload::RequestBody;
use crate::dial::random_below;
use crate::upstream::attempt::{AttemptError, is_repeatable};

/// Longest wait before a retry, as a multiple of the first one (Envoy's default).
const MAX_BACKOFF: u32 = 10;

/// Outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// A response.
    Answered(StatusCode),
    /// Connected, but no response.
    Unanswered,
    /// No endpoint could be connected to.
    Unreachable,
    /// Not caused by an endpoint.
    Other,
}

impl From<AttemptError> for AttemptOutcome {
    fn from(trouble: AttemptError) -> Self {
        match trouble.flag {
            _ if trouble.unseen => AttemptOutcome::Unreachable,
            Flag::UpstreamHungUp | Flag::UpstreamTimeout | Flag::UpstreamConnectTimeout | Flag::RuleTimeout => {
                AttemptOutcome::Unanswered
            }
            Flag::UpstreamInvalid | Flag::UpstreamHeadTooLarge | Flag::UpstreamCoding => AttemptOutcome::Unanswered,
            _ => AttemptOutcome::Other,
        }
    }
}

/// Remaining retries of a request.
#[derive(Debug)]
pub struct Retries<'r> {
    policy: &'r Retry,
    made: u32,
}

impl<'r> Retries<'r> {
    /// The retries of a request for this route, if any.
    pub fn of(route: &'r ResolvedRoute, request: &Request<RequestBody>) -> Option<Self> {
        let policy = route.rule.as_ref()?.retry.as_ref()?;
        is_repeatable(request).then_some(Retries { policy, made: 0 })
    }

    /// Whether a retry is left.
    pub fn are_left(&self) -> bool {
        self.made < self.policy.count
    }

    /// How long to wait before the next retry after this outcome; `None`: no retry.
    pub fn after(&mut self, outcome: AttemptOutcome) -> Option<Duration> {
        let counts = match outcome {
            AttemptOutcome::Answered(status) => {
                self.policy.statuses.iter().any(|range| range.contains(&status.as_u16()))
            }
            AttemptOutcome::Unanswered => self.policy.unanswered,
            AttemptOutcome::Unreachable => self.policy.unreachable,
            AttemptOutcome::Other => false,
        };
        if !counts || !self.are_left() {
            return None;
        }
        let most = self
            .policy
            .backoff
            .saturating_mul(1 << self.made.min(8))
            .min(self.policy.backoff.saturating_mul(MAX_BACKOFF));
        self.made += 1;
        Some(most.mul_f64(f64::from(random_below(1 << 20)) / f64::from(1 << 20)))
    }
}

#[cfg(test)]
mod tests;
