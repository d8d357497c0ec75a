//! Weighted round robin without a lock: the number of a turn, which a counter supplies, determines its service and
//! endpoint.
//!
//! Small weights have a precomputed cycle, in which each service has as many turns as its weight, spread evenly (smooth
//! weighted round robin, as nginx's). The endpoints of a service alternate. So services get exactly their shares,
//! whereas weights of single endpoints would be rounded.
//!
//! Where the cycle would be long (weights go up to a million), turns are the points of a Weyl sequence with the golden
//! ratio as its step (Kuipers and Niederreiter 1974, 2.3): a service has the points within its part of the unit
//! interval. Shares are exact in the long run, and of N turns in a row a service has at most 3 + log₂ N too many or too
//! few.

/// Longest precomputed cycle, in turns: more than any Route needs.
const LONGEST_CYCLE: usize = 4096;
/// 2⁶⁴ divided by the golden ratio.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Order of turns.
#[derive(Debug, Default)]
pub struct Turns {
    order: PickOrder,
    services: Box<[ServiceRange]>,
}

#[derive(Debug)]
enum PickOrder {
    /// For each turn of a cycle: the service, and how many turns that service has before it in the cycle.
    Cycle(Box<[(u16, u16)]>),
    /// For each service the end of its part of the interval, in 2⁻⁶⁴.
    Spread(Box<[u128]>),
}

impl Default for PickOrder {
    fn default() -> Self {
        PickOrder::Cycle(Box::default())
    }
}

#[derive(Debug)]
struct ServiceRange {
    /// Index of its first endpoint among those of all services.
    first: usize,
    endpoints: usize,
    weight: usize,
}

/// Service and endpoint of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Index of the service.
    pub service: usize,
    /// Index of the endpoint among those of all services; `None` when the service has none.
    pub endpoint: Option<usize>,
}

impl Turns {
    /// The order of services, by weight and number of endpoints. A service with weight 0 has no turn.
    pub fn new(services: impl Iterator<Item = (u32, usize)>) -> Self {
        let mut first = 0;
        let mut services: Vec<ServiceRange> = services
            .map(|(weight, endpoints)| {
                first += endpoints;
                ServiceRange { first: first - endpoints, endpoints, weight: weight as usize }
            })
            .collect();
        let divisor = services.iter().fold(0, |divisor, service| greatest_common_divisor(divisor, service.weight));
        services.iter_mut().for_each(|service| service.weight /= divisor.max(1));
        let total: usize = services.iter().map(|service| service.weight).sum();
        let order = if total <= LONGEST_CYCLE { cycle(&services, total) } else { spread(&services, total) };
        Turns { order, services: services.into() }
    }

    /// Service and endpoint of a turn; `None` when all weights are 0.
    pub fn holder(&self, turn: u32) -> Option<Turn> {
        match &self.order {
            PickOrder::Cycle(cycle) => {
                let turn = turn as usize;
                let (service, before) = *cycle.get(turn.checked_rem(cycle.len())?)?;
                let (number, service) = (usize::from(service), self.services.get(usize::from(service))?);
                let turns_of_service = turn / cycle.len() * service.weight + usize::from(before);
                let endpoint = turns_of_service.checked_rem(service.endpoints).map(|step| service.first + step);
                Some(Turn { service: number, endpoint })
            }
            PickOrder::Spread(ends) => {
                let point = point(u64::from(turn));
                let number = ends.partition_point(|end| *end <= point);
                let (service, end) = (self.services.get(number)?, *ends.get(number)?);
                let begin = number.checked_sub(1).and_then(|before| ends.get(before).copied()).unwrap_or_default();
                // Endpoints have equal parts of their service's part.
                let step = (point - begin) * service.endpoints as u128 / (end - begin).max(1);
                let endpoint = (service.endpoints > 0).then_some(service.first + step as usize);
                Some(Turn { service: number, endpoint })
            }
        }
    }
}

/// A share of all turns: exactly `part` of each round of `whole` turns. The selected turns differ between rounds, so
/// that they do not coincide with a period of the requests.
#[derive(Clone, Copy, Debug)]
pub struct Portion {
    part: u32,
    whole: u32,
    /// Coprime to `whole`, so that it visits all turns of a round; near its golden section, so that the selected ones
    /// are spread evenly.
    step: u32,
}

impl Portion {
    /// `part` of `whole` turns, in lowest terms; all turns if `part` is larger.
    pub fn new(part: u32, whole: u32) -> Self {
        let divisor = greatest_common_divisor(part as usize, whole as usize).max(1) as u32;
        let (part, whole) = (part / divisor, (whole / divisor).max(1));
        let golden = (u128::from(GOLDEN_STEP) * u128::from(whole)) >> 64;
        let is_coprime = |step: &u32| greatest_common_divisor(*step as usize, whole as usize) == 1;
        let step = (1..=golden as u32).rev().find(is_coprime).unwrap_or(1);
        Portion { part, whole, step }
    }

    /// Whether it includes every turn.
    pub fn is_all(&self) -> bool {
        self.part >= self.whole
    }

    /// Whether it includes a turn.
    pub fn has(&self, turn: u64) -> bool {
        let whole = u64::from(self.whole);
        let (round, number) = (turn / whole, turn % whole);
        let first = (point(round) * u128::from(whole)) >> 64;
        (number * u64::from(self.step) + first as u64) % whole < u64::from(self.part)
    }
}

/// The point of a turn in the unit interval, in 2⁻⁶⁴.
fn point(turn: u64) -> u128 {
    u128::from(turn.wrapping_mul(GOLDEN_STEP))
}

fn cycle(services: &[ServiceRange], total: usize) -> PickOrder {
    let mut credit = vec![0_i64; services.len()];
    let mut had = vec![0_u16; services.len()];
    let mut cycle = Vec::with_capacity(total);
    for _ in 0..total {
        let weighted = credit.iter_mut().zip(services).enumerate().map(|(index, (credit, service))| {
            *credit += service.weight as i64;
            (index, *credit)
        });
        // The first of several.
        let next = weighted.rev().max_by_key(|(_, credit)| *credit).map_or(0, |(index, _)| index);
        if let (Some(credit), Some(had)) = (credit.get_mut(next), had.get_mut(next)) {
            *credit -= total as i64;
            cycle.push((next as u16, *had));
            *had += 1;
        }
    }
    PickOrder::Cycle(cycle.into())
}

fn spread(services: &[ServiceRange], total: usize) -> PickOrder {
    let mut before = 0_u128;
    let ends = services.iter().map(|service| {
        before += service.weight as u128;
        (before << 64) / total as u128
    });
    PickOrder::Spread(ends.collect())
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests;
