//! Which addresses and ports may have a socket of this host: a set of bits that the kernel's table of connections need not be
//! asked about, of which each SYN of a flood would miss the processor's caches. It may say yes of others, never no of one in it.

use crate::maps::{FlowKey, GATE_SOCKET_BITS};

/// Multiplier that spreads bits over a word (2⁶⁴ divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bit of [`crate::maps::GateSockets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the word.
    pub word: u32,
    /// The bit alone.
    pub bit: u32,
}

/// The place of a client's address and port. Two clients may have one: who chooses addresses to that end gains look-ups.
#[inline(always)]
pub fn place(client: &FlowKey) -> Place {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = client.source;
    let upper = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
    let lower = u64::from_ne_bytes([i, j, k, l, m, n, o, p]);
    let mixed = (lower ^ upper.wrapping_mul(SPREAD) ^ (client.source_port as u64) << 16).wrapping_mul(SPREAD);
    let bit = ((mixed ^ mixed >> 32).wrapping_mul(SPREAD) >> 32) as u32 & (GATE_SOCKET_BITS as u32 - 1);
    Place { word: bit / u32::BITS, bit: 1 << (bit % u32::BITS) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::maps::mapped;

    fn client(source: [u8; 16], source_port: u16) -> FlowKey {
        FlowKey { source, source_port, destination: [1; 16], destination_port: 443 }
    }

    /// Of so many clients, how many have a place of their own.
    fn places(clients: impl Iterator<Item = FlowKey>) -> usize {
        let places: BTreeSet<u32> =
            clients.map(|client| place(&client)).map(|at| at.word * u32::BITS + at.bit.trailing_zeros()).collect();
        assert!(places.iter().all(|place| (*place as usize) < GATE_SOCKET_BITS));
        places.len()
    }

    #[test]
    fn addresses_and_ports_are_spread_over_all_places() {
        const CLIENTS: u32 = 20_000;
        // At random, 19,260 of so many would have a place of their own.
        let are_spread = |number: usize| (18_500..=CLIENTS as usize).contains(&number);
        let v4 = |number: u32| mapped((0x0a00_0000 | number).to_be_bytes());
        let prefix = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 7];
        let v6 = |number: u32| {
            let [a, b, c, d] = number.to_be_bytes();
            let [p, q, r, s, t, u, v, w] = prefix;
            [p, q, r, s, t, u, v, w, 0, 0, 0, 0, a, b, c, d]
        };
        let network = |number: u32| {
            let [.., b, c, d] = number.to_be_bytes();
            [0x20, 1, 0xd, 0xb8, 0, b, c, d, 0, 0, 0, 0, 0, 0, 0, 1]
        };
        let numbers = || 0..CLIENTS;
        assert!(are_spread(places(numbers().map(|port| client(v4(7), port as u16)))), "ports of a client");
        assert!(are_spread(places(numbers().map(|number| client(v4(number), 40_000)))), "neighbours");
        assert!(are_spread(places(numbers().map(|number| client(v4(number << 8), 40_000)))), "networks");
        assert!(are_spread(places(numbers().map(|number| client(v4(number / 100), number as u16)))), "both");
        assert!(are_spread(places(numbers().map(|number| client(v6(number), 40_000)))));
        assert!(are_spread(places(numbers().map(|number| client(network(number), 40_000)))));
    }
}
