//! Round robin by weight, without a lock: where in which order a turn is follows from its number alone, which a counter
//! gives.
//!
//! Small weights have a cycle that is worked out beforehand. In it each service comes as often as its weight says,
//! spread as evenly as can be (smooth weighted round robin, as nginx's); the endpoints of a service come one after the
//! other. So services have exactly the shares that the route gives them, where weights of single endpoints would be
//! rounded.
//!
//! Where the cycle would be long, for weights of up to a million, turns are the points of a Weyl sequence with the step
//! of the golden ratio (Kuipers and Niederreiter 1974, 2.3): a service has the points in its part of the unit interval.
//! Shares are exact in the long run, and of N turns in a row no service has more than 3 + log₂ N too many or too few.

/// The longest cycle that is worked out, in turns: more than any Route needs.
const LONGEST_CYCLE: usize = 4096;
/// 2⁶⁴ divided by the golden ratio.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The order of turns.
#[derive(Debug, Default)]
pub struct Turns {
    order: Order,
    services: Box<[Service]>,
}

#[derive(Debug)]
enum Order {
    /// For each turn of a cycle: which service, and how many of its turns come before it in the cycle.
    Cycle(Box<[(u16, u16)]>),
    /// For each service, where its part of the interval ends, in 2⁻⁶⁴.
    Spread(Box<[u128]>),
}

impl Default for Order {
    fn default() -> Self {
        Order::Cycle(Box::default())
    }
}

#[derive(Debug)]
struct Service {
    /// Its first endpoint among those of all services.
    first: usize,
    endpoints: usize,
    weight: usize,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The service.
    pub service: usize,
    /// The endpoint, as a number among those of all services; `None` when the service has none.
    pub endpoint: Option<usize>,
}

impl Turns {
    /// The order of services, by weight and number of endpoints. Those without weight have no turn.
    pub fn new(services: impl Iterator<Item = (u32, usize)>) -> Self {
        let mut first = 0;
        let mut services: Vec<Service> = services
            .map(|(weight, endpoints)| {
                first += endpoints;
                Service { first: first - endpoints, endpoints, weight: weight as usize }
            })
            .collect();
        let divisor = services.iter().fold(0, |divisor, service| greatest_common_divisor(divisor, service.weight));
        services.iter_mut().for_each(|service| service.weight /= divisor.max(1));
        let total: usize = services.iter().map(|service| service.weight).sum();
        let order = if total <= LONGEST_CYCLE { cycle(&services, total) } else { spread(&services, total) };
        Turns { order, services: services.into() }
    }

    /// Whose turn it is; `None` when nobody has weight.
    pub fn holder(&self, turn: u32) -> Option<Turn> {
        match &self.order {
            Order::Cycle(cycle) => {
                let turn = turn as usize;
                let (service, before) = *cycle.get(turn.checked_rem(cycle.len())?)?;
                let (number, service) = (usize::from(service), self.services.get(usize::from(service))?);
                let turns_of_service = turn / cycle.len() * service.weight + usize::from(before);
                let endpoint = turns_of_service.checked_rem(service.endpoints).map(|step| service.first + step);
                Some(Turn { service: number, endpoint })
            }
            Order::Spread(ends) => {
                let point = point(u64::from(turn));
                let number = ends.partition_point(|end| *end <= point);
                let (service, end) = (self.services.get(number)?, *ends.get(number)?);
                let begin = number.checked_sub(1).and_then(|before| ends.get(before).copied()).unwrap_or_default();
                // The endpoints of a service have equal parts of its part.
                let step = (point - begin) * service.endpoints as u128 / (end - begin).max(1);
                let endpoint = (service.endpoints > 0).then_some(service.first + step as usize);
                Some(Turn { service: number, endpoint })
            }
        }
    }
}

/// A part of all turns: of each round of `whole` turns exactly `part`. Which these are differs from round to round, as
/// what comes in turn may go by a rhythm of its own.
#[derive(Clone, Copy, Debug)]
pub struct Portion {
    part: u32,
    whole: u32,
    /// Without a common divisor with `whole`, so that it leads through all places of a round, and near its golden
    /// section, so that those of the part are spread evenly.
    step: u32,
}

impl Portion {
    /// So many of so many turns, in lowest terms; all of them if that is more than there are.
    pub fn new(part: u32, whole: u32) -> Self {
        let divisor = greatest_common_divisor(part as usize, whole as usize).max(1) as u32;
        let (part, whole) = (part / divisor, (whole / divisor).max(1));
        let golden = (u128::from(GOLDEN_STEP) * u128::from(whole)) >> 64;
        let is_coprime = |step: &u32| greatest_common_divisor(*step as usize, whole as usize) == 1;
        let step = (1..=golden as u32).rev().find(is_coprime).unwrap_or(1);
        Portion { part, whole, step }
    }

    /// Whether that is every turn.
    pub fn is_all(&self) -> bool {
        self.part >= self.whole
    }

    /// Whether a turn belongs to it.
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

fn cycle(services: &[Service], total: usize) -> Order {
    let mut credit = vec![0_i64; services.len()];
    let mut had = vec![0_u16; services.len()];
    let mut cycle = Vec::with_capacity(total);
    for _ in 0..total {
        let weighted = credit.iter_mut().zip(services).enumerate().map(|(index, (credit, service))| {
            *credit += service.weight as i64;
            (index, *credit)
        });
        // Of several the first one.
        let next = weighted.rev().max_by_key(|(_, credit)| *credit).map_or(0, |(index, _)| index);
        if let (Some(credit), Some(had)) = (credit.get_mut(next), had.get_mut(next)) {
            *credit -= total as i64;
            cycle.push((next as u16, *had));
            *had += 1;
        }
    }
    Order::Cycle(cycle.into())
}

fn spread(services: &[Service], total: usize) -> Order {
    let mut before = 0_u128;
    let ends = services.iter().map(|service| {
        before += service.weight as u128;
        (before << 64) / total as u128
    });
    Order::Spread(ends.collect())
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests;
