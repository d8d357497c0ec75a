//! The program and the pure function decide alike.

use super::*;

/// The program's lists, for the pure function; without rates.
struct Lists;

const DENIED: u32 = 5;
const ALLOWED: u32 = 6;
const LISTS: [(u32, [&str; 2]); 2] =
    [(DENIED, ["192.0.2.0/25", "2001:db8::/34"]), (ALLOWED, ["192.0.2.0/24", "2001:db8::/33"])];

fn list(id: u32) -> impl Iterator<Item = IpNet> {
    let of_id = LISTS.into_iter().filter(move |(list, _)| *list == id);
    of_id.flat_map(|(_, nets)| nets).map(|net| net.parse().unwrap())
}

impl GateState for Lists {
    fn is_listed(&self, id: u32, source: &[u8; 16]) -> bool {
        list(id).any(|net| net.contains(&address(source)))
    }

    fn connections_of(&self, _: &GatePolicy, _: &[u8; 16]) -> u32 {
        0
    }

    fn is_counted(&self, _: &FlowKey) -> bool {
        false
    }

    fn is_retransmitted(&mut self, _: &Arrival) -> bool {
        false
    }

    fn take_of_source(&mut self, _: &GatePolicy, _: &[u8; 16]) -> bool {
        true
    }

    fn take_of_listener(&mut self, _: &GatePolicy) -> bool {
        true
    }

    fn record(&mut self) {}
}

/// Mutated packets to compare the decisions about; `SLUICE_PACKETS` is another number.
const PACKETS: u64 = 200_000;

/// splitmix64.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Both decisions, of the same policy.
struct Both {
    rig: Rig,
    policy: GatePolicy,
    /// Packets of every kind, with and without a VLAN tag.
    packets: Vec<Vec<u8>>,
}

impl Both {
    fn new() -> Both {
        let mut rig = Rig::new();
        for (id, _) in LISTS {
            list(id).for_each(|net| rig.list(id, net));
        }
        let policy = GatePolicy { deny: DENIED, allow: ALLOWED, flags: GATE_NO_FRAGMENTS | GATE_NO_OPTIONS, ..plain() };
        let mut packets = Vec::new();
        for v6 in [false, true] {
            let mut client = client(v6, 2000);
            rig.policy(&client, policy);
            let data = client.data(&[7; 64]);
            let (next, between): (u8, &[u8]) = if v6 { (0, &[6, 0, 1, 4, 0, 0, 0, 0]) } else { (0, &[1, 1, 1, 0]) };
            packets.extend(fragments(&data, 7, 32));
            packets.extend([client.syn(), with(&data, next, between), data]);
        }
        let tagged = |packet: &Vec<u8>| [&packet[..12], &[0x81, 0, 0, 5], &packet[12..]].concat();
        packets.extend(packets.iter().map(tagged).collect::<Vec<_>>());
        Both { rig, policy, packets }
    }

    /// What the pure function decides, after the program has decided the same.
    fn decide(&mut self, packet: &[u8]) -> Option<Reason> {
        let found = read(&packet).and_then(|arrival| {
            let (address, port) = (arrival.flow.destination, arrival.flow.destination_port);
            let is_ours = |v6| client(v6, 0).flow().destination == address && [0, PORT].contains(&port);
            (is_ours(false) || is_ours(true)).then(|| rejection(&arrival, &self.policy, &mut Lists)).flatten()
        });
        match found {
            Some(reason) => self.rig.drops(packet, reason),
            None => assert_eq!(self.rig.run(packet), PASS, "{packet:x?}"),
        }
        found
    }
}

#[test]
fn about_mutated_packets() {
    let mut both = Both::new();
    let count: u64 = std::env::var("SLUICE_PACKETS").ok().and_then(|text| text.parse().ok()).unwrap_or(PACKETS);
    let (mut seed, mut dropped) = (1, 0);
    for _ in 0..count {
        let mut packet = both.packets[next(&mut seed) as usize % both.packets.len()].clone();
        for _ in 0..next(&mut seed) % 4 {
            // Headers are changed more often than what follows.
            let at =
                next(&mut seed) as usize % if next(&mut seed) & 3 == 0 { packet.len() } else { packet.len().min(80) };
            packet[at] = next(&mut seed) as u8;
        }
        if next(&mut seed) & 7 == 0 {
            // The kernel's test run takes no shorter ones.
            packet.truncate((next(&mut seed) as usize % packet.len()).max(14));
        }
        dropped += u64::from(both.decide(&packet).is_some());
    }
    assert!(dropped > count / 10 && dropped < count * 9 / 10, "{dropped} of {count}");
}

/// A packet that lacks a byte of what its headers say is malformed, as soon as its addresses can be read.
#[test]
fn about_packets_that_end_anywhere() {
    let mut both = Both::new();
    for packet in both.packets.clone() {
        let decisions: Vec<_> = (14..packet.len()).map(|length| both.decide(&packet[..length])).collect();
        let readable = decisions.iter().position(Option::is_some).unwrap_or(decisions.len());
        assert!((20..=44).contains(&readable), "{readable}: {packet:x?}");
        assert!(decisions[readable..].iter().all(|found| *found == Some(Reason::Malformed)), "{decisions:?}");
    }
}
