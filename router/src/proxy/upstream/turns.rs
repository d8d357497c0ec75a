//! Round robin by weight, without a lock: the order of one cycle is worked out beforehand, and a counter tells where in
//! which cycle a turn is.
//!
//! In a cycle each service comes as often as its weight says, spread as evenly as can be (smooth weighted round robin,
//! as nginx's); the endpoints of a service come one after the other. So services have exactly the shares that the route
//! gives them, where weights of single endpoints would be rounded.

/// The order of a cycle.
#[derive(Debug, Default)]
pub struct Turns {
    /// For each turn of a cycle: which service, and how many of its turns come before it in the cycle.
    cycle: Box<[(u16, u16)]>,
    services: Box<[Service]>,
}

#[derive(Debug)]
struct Service {
    /// Its first endpoint among those of all services.
    first: usize,
    endpoints: usize,
    /// Its turns in a cycle.
    weight: usize,
}

impl Turns {
    /// The order of services, by weight (0 – 256) and number of endpoints. Those without either have no turn.
    pub fn new(services: impl Iterator<Item = (u16, usize)>) -> Self {
        let mut first = 0;
        let mut services: Vec<Service> = services
            .map(|(weight, endpoints)| {
                let weight = if endpoints == 0 { 0 } else { usize::from(weight) };
                first += endpoints;
                Service { first: first - endpoints, endpoints, weight }
            })
            .collect();
        let divisor = services.iter().fold(0, |divisor, service| greatest_common_divisor(divisor, service.weight));
        services.iter_mut().for_each(|service| service.weight /= divisor.max(1));

        let total: usize = services.iter().map(|service| service.weight).sum();
        let mut credit = vec![0_i64; services.len()];
        let mut had = vec![0_u16; services.len()];
        let mut cycle = Vec::with_capacity(total);
        for _ in 0..total {
            let weighted = credit.iter_mut().zip(&services).enumerate().map(|(index, (credit, service))| {
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
        Turns { cycle: cycle.into(), services: services.into() }
    }

    /// Whose turn it is, as a number among the endpoints of all services; `None` when nobody has weight.
    pub fn holder(&self, turn: u32) -> Option<usize> {
        let turn = turn as usize;
        let (service, before) = *self.cycle.get(turn.checked_rem(self.cycle.len())?)?;
        let service = self.services.get(usize::from(service))?;
        let turns_of_service = turn / self.cycle.len() * service.weight + usize::from(before);
        Some(service.first + turns_of_service.checked_rem(service.endpoints)?)
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests;
