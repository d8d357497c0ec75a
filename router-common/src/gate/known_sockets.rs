//! Which addresses and ports may have a socket of this host: a set of bits that the kernel's table of connections need not be
//! asked about, of which each SYN of a flood would miss the processor's caches. It may say yes of others, never no of one in it.
//!
//! A flood's SYNs miss those caches in the bits as well, as long as they are more than a page. So a page of coarse bits is read
//! first, and the others only where it says yes.

use crate::maps::{FlowKey, GATE_SOCKET_BITS, GATE_SOCKET_COARSE_BITS, GateSockets};

/// Multiplier that spreads bits over a word (2⁶⁴ divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bit of [`GateSockets::coarse`] or [`GateSockets::fine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the word.
    pub word: u32,
    /// The bit alone.
    pub bit: u32,
}

impl Place {
    #[inline(always)]
    fn of(bit: u32) -> Self {
        Place { word: bit / u32::BITS, bit: 1 << (bit % u32::BITS) }
    }
}

/// The bits of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Of [`GateSockets::coarse`].
    pub coarse: Place,
    /// Of [`GateSockets::fine`].
    pub fine: Place,
}

/// The bits of a client's address and port. Two clients may have the same: who chooses addresses to that end gains look-ups.
#[inline(always)]
pub fn places(client: &FlowKey) -> Places {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = client.source;
    let upper = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
    let lower = u64::from_ne_bytes([i, j, k, l, m, n, o, p]);
    let mixed = (lower ^ upper.wrapping_mul(SPREAD) ^ (client.source_port as u64) << 16).wrapping_mul(SPREAD);
    let bit = ((mixed ^ mixed >> 32).wrapping_mul(SPREAD) >> 32) as u32 & (GATE_SOCKET_BITS as u32 - 1);
    const { assert!(GATE_SOCKET_BITS.is_power_of_two() && GATE_SOCKET_COARSE_BITS.is_power_of_two()) };
    Places { coarse: Place::of(bit / (GATE_SOCKET_BITS / GATE_SOCKET_COARSE_BITS) as u32), fine: Place::of(bit) }
}

impl GateSockets {
    /// No socket.
    pub const EMPTY: Self = GateSockets {
        coarse: [0; GATE_SOCKET_COARSE_BITS / u32::BITS as usize],
        fine: [0; GATE_SOCKET_BITS / u32::BITS as usize],
    };

    /// Adds the socket of a connection with this client.
    pub fn insert(&mut self, client: &FlowKey) {
        let Places { coarse, fine } = places(client);
        for (words, place) in [(self.coarse.as_mut_slice(), coarse), (self.fine.as_mut_slice(), fine)] {
            if let Some(word) = words.get_mut(place.word as usize) {
                *word |= place.bit;
            }
        }
    }

    /// How many fine bits are set.
    pub fn count(&self) -> u32 {
        self.fine.iter().map(|word| word.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use super::*;
    use crate::maps::mapped;

    fn client(source: [u8; 16], source_port: u16) -> FlowKey {
        FlowKey { source, source_port, destination: [1; 16], destination_port: 443 }
    }

    /// Of so many clients, how many have a fine bit of their own.
    fn bits(clients: impl Iterator<Item = FlowKey>) -> usize {
        let number = |place: Place| (place.word * u32::BITS + place.bit.trailing_zeros()) as usize;
        let all: Vec<Places> = clients.map(|client| places(&client)).collect();
        assert!(all.iter().all(|at| number(at.fine) / 8 == number(at.coarse) && number(at.fine) < GATE_SOCKET_BITS));
        all.iter().map(|at| number(at.fine)).collect::<BTreeSet<_>>().len()
    }

    #[test]
    fn one_client_has_one_bit_of_each_kind() {
        let mut sockets = Box::new(GateSockets::EMPTY);
        sockets.insert(&client([1; 16], 40_000));
        sockets.insert(&client([1; 16], 40_000));
        let Places { coarse, fine } = places(&client([1; 16], 40_000));
        let mut expected = Box::new(GateSockets::EMPTY);
        expected.coarse[coarse.word as usize] = coarse.bit;
        expected.fine[fine.word as usize] = fine.bit;
        assert_eq!((sockets.count(), sockets), (1, expected));
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
        assert!(are_spread(bits(numbers().map(|port| client(v4(7), port as u16)))), "ports of a client");
        assert!(are_spread(bits(numbers().map(|number| client(v4(number), 40_000)))), "neighbours");
        assert!(are_spread(bits(numbers().map(|number| client(v4(number << 8), 40_000)))), "networks");
        assert!(are_spread(bits(numbers().map(|number| client(v4(number / 100), number as u16)))), "both");
        assert!(are_spread(bits(numbers().map(|number| client(v6(number), 40_000)))));
        assert!(are_spread(bits(numbers().map(|number| client(network(number), 40_000)))));
    }
}
