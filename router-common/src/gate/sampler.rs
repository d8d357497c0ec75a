//! Which rejected packets are recorded: one, chosen at random, of those in a window of a few milliseconds.
//!
//! The record of a window has the number of its packets, so that the sum over records is the number of all packets, and a
//! sender's part of that sum has the sender's part of the packets as its mean, whatever their rhythm.

/// Length of a window in nanoseconds. It begins with a packet.
pub const WINDOW_NS: u64 = 1 << 22;

/// The sampler of one processor.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Sampler {
    /// When the window began (`CLOCK_MONOTONIC`).
    pub begin_ns: u64,
    /// Number of the window among those of the processor, from 1 on.
    pub window: u64,
    /// Packets in the window so far.
    pub packets: u64,
    /// The packet of the window that takes the place of the one that is recorded.
    next: u64,
}

impl Sampler {
    /// Counts a packet; whether it is to be the window's record.
    #[inline(always)]
    pub fn chooses(&mut self, now_ns: u64, random: impl FnOnce() -> u32) -> bool {
        if self.window == 0 || now_ns.wrapping_sub(self.begin_ns) >= WINDOW_NS {
            *self = Sampler { begin_ns: now_ns, window: self.window + 1, packets: 0, next: 1 };
        }
        self.packets += 1;
        if self.packets < self.next {
            return false;
        }
        // Packet n takes the place with probability 1/n, so that at any time each packet has it equally likely. The next one
        // that does is later than m with probability n/m (Li, ACM TOMS 20 (1994), algorithm L for one place).
        self.next = (self.packets << 32) / (random() as u64 + 1) + 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// The records of packets at these times: which packet, and how many it stands for.
    fn records(times: impl Iterator<Item = u64>) -> Vec<(usize, u64)> {
        let (mut random, mut sampler, mut records) = (1_u64, Sampler::default(), Vec::new());
        for (number, now) in times.enumerate() {
            let chosen = sampler.chooses(now, || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 32) as u32
            });
            records.resize(sampler.window as usize, (number, 0));
            let record = &mut records[sampler.window as usize - 1];
            *record = (if chosen { number } else { record.0 }, sampler.packets);
        }
        records
    }

    #[test]
    fn packets_with_time_between_them_are_all_recorded() {
        let recorded = records((0..1000).map(|number| (1 << 40) + number * WINDOW_NS));
        assert_eq!(recorded, (0..1000).map(|number| (number, 1)).collect::<Vec<_>>());
    }

    #[test]
    fn records_stand_for_all_packets_and_each_sender_has_its_share() {
        // A minute of bursts, as long as a window or longer, in each of which the senders follow one another.
        for (every_ns, burst) in [(WINDOW_NS, 40), (3 * WINDOW_NS / 2, 40), (10_000, 4)] {
            let bursts = 60_000_000_000 / every_ns;
            let recorded = records((0..bursts * burst).map(|number| number / burst * every_ns));
            let all: u64 = recorded.iter().map(|(_, packets)| packets).sum();
            assert_eq!(all, bursts * burst);
            for sender in 0..4 {
                let of_sender = recorded.iter().filter(|(number, _)| *number as u64 % burst * 4 / burst == sender);
                let share = of_sender.map(|(_, packets)| packets).sum::<u64>() * 100 / all;
                assert!((22..=28).contains(&share), "sender {sender}, {burst} each {every_ns} ns: {share} %");
            }
        }
    }
}
