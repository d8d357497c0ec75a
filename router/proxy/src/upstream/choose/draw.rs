//! Draws one of several endpoints by the route's rule.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use router_table::policy::Balance;

use crate::dial::random_below;
use crate::upstream::concurrency_limit::Occupancy;
use crate::upstream::hashing::{HashKey, score};
use crate::upstream::plan::{BalancingPlan, MemberShare};

/// Number of turns after which round robin falls back to weighted chance: nearly all endpoints are ejected.
const TURNS: usize = 8;
/// Scale for comparing loads per weight as integers; greater than the maximum weight, 256.
const WEIGHT_UNIT: u64 = 1 << 16;

impl BalancingPlan {
    pub(super) fn occupancy(&self, index: usize) -> Option<&Arc<Occupancy>> {
        self.kept().get(index)?.occupancy.as_ref()
    }

    pub(super) fn is_full(&self, index: usize) -> bool {
        self.occupancy(index).is_some_and(|it| it.is_full())
    }

    /// A passing member by the rule: for a share with a turn, the member whose turn it is, else a weighted draw.
    pub(super) fn draw(
        &self,
        key: Option<HashKey>,
        share: Option<MemberShare>,
        passes: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let drawn = match (self.balance_of(share), share) {
            (Balance::LeastConnections, _) => return self.least(passes),
            (Balance::Source | Balance::Hash, _) if let Some(key) = key => return self.highest(key, passes),
            (_, Some(share)) => share.member.filter(|index| passes(*index)),
            (Balance::Random | Balance::Source | Balance::Hash, None) => {
                self.holder(random_below(self.total())).filter(|index| passes(*index))
            }
            (Balance::RoundRobin, None) => {
                let next = || self.turns()?.holder(self.turn()).and_then(|turn| turn.endpoint);
                (0..TURNS).filter_map(|_| next()).find(|index| passes(*index))
            }
        };
        drawn.or_else(|| self.draw_among(passes))
    }

    /// A weighted draw among the passing members; visits each of them.
    fn draw_among(&self, passes: impl Fn(usize) -> bool) -> Option<usize> {
        let passing = || self.weights().filter(|(index, _)| passes(*index));
        let total: u32 = passing().map(|(_, weight)| weight).sum();
        let mut ticket = if total == 0 { return None } else { random_below(total) };
        let mut members = passing();
        let holder = members.find(|(_, weight)| {
            let hit = ticket < *weight;
            ticket = ticket.saturating_sub(*weight);
            hit
        });
        holder.map(|(index, _)| index)
    }

    /// The least loaded member. Ties go to the first one, counted from a start that changes on every call.
    fn least(&self, passes: impl Fn(usize) -> bool) -> Option<usize> {
        let passing = self.members().filter(|index| passes(*index));
        let count = passing.clone().count() as u32;
        // Turns belong to services if these have shares; among the endpoints of one service, a random start is as good.
        let start = if self.by_share { random_below(count) } else { self.turn().checked_rem(count)? };
        let order = passing.cycle().skip(start as usize).take(count as usize);
        let loads = order.map(|index| {
            let active = u64::from(self.occupancy(index).map_or(0, |it| it.active()));
            // As in HAProxy: idle members are equal whatever their weight, and the new request counts towards the load.
            let load = |active| (active + 1) * WEIGHT_UNIT / u64::from(self.weight(index).max(1));
            (index, if active == 0 { 0 } else { load(active) })
        });
        // `min_by_key` returns the first of equal minima.
        loads.min_by_key(|(_, load)| *load).map(|(index, _)| index)
    }

    /// The member with the highest score.
    fn highest(&self, key: HashKey, passes: impl Fn(usize) -> bool) -> Option<usize> {
        let members = self.weights().zip(self.kept()).filter(|((index, _), _)| passes(*index));
        let scored = members.map(|((index, weight), member)| (index, score(key, member.tag, weight)));
        scored.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index)
    }

    fn turn(&self) -> u32 {
        self.state().map_or(0, |state| state.turn.fetch_add(1, Ordering::Relaxed))
    }
}
