//! Slots of libxdp's dispatcher: their order, and the dispatcher's configuration.

use router_common::dispatcher::{DispatcherConfig, SLOTS};

/// Version of the protocol.
pub const VERSION: u8 = 2;
/// `XDP_DISPATCHER_MAGIC`.
const MAGIC: u8 = 236;
/// `BPF_F_XDP_HAS_FRAGS`.
const FRAGS: u32 = 1 << 5;
/// The gate's place among the programs: before those of libxdp's default, 50.
const PRIORITY: u32 = 10;
/// Actions of the gate after which the next program is called: `XDP_PASS`, and what an empty slot returns.
const CONTINUED: u32 = 1 << 2 | 1 << 31;

/// The configuration of a dispatcher with these slots; `None` if they are too many.
pub fn config_of(slots: &[Slot]) -> Option<DispatcherConfig> {
    let programs = u8::try_from(slots.len()).ok().filter(|_| slots.len() <= SLOTS)?;
    let is_frags = u8::from(slots.iter().all(|slot| slot.flags & FRAGS != 0));
    let mut config = DispatcherConfig { magic: MAGIC, version: VERSION, programs, is_frags, ..DispatcherConfig::EMPTY };
    for (number, slot) in slots.iter().enumerate() {
        config.continued[number] = slot.continued;
        config.priorities[number] = slot.priority;
        config.flags[number] = slot.flags;
    }
    Some(config)
}

/// The slots that a configuration uses; `None` if its version is another one.
pub fn slots_in(config: &DispatcherConfig) -> Option<Vec<Slot>> {
    let slots = usize::from(config.programs);
    if (config.magic, config.version) != (MAGIC, VERSION) || slots > SLOTS {
        return None;
    }
    let slot = |number: usize| Slot {
        continued: config.continued[number],
        priority: config.priorities[number],
        flags: config.flags[number],
    };
    Some((0..slots).map(slot).collect())
}

/// What a dispatcher knows of the program in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Bit set of actions after which the next program is called.
    continued: u32,
    /// Lower ones come first.
    priority: u32,
    /// `BPF_F_XDP_HAS_FRAGS` or 0.
    flags: u32,
}

impl Slot {
    /// The gate's.
    pub const GATE: Slot = Slot { continued: CONTINUED, priority: PRIORITY, flags: FRAGS };

    /// Whether a program in this slot comes before the gate: by priority, then by name.
    pub fn is_before_gate(&self, name: &str, gate: &str) -> bool {
        (self.priority, name) < (PRIORITY, gate)
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    const OTHER: Slot = Slot { continued: 1 << 31, priority: 50, flags: 0 };

    #[test]
    fn a_configuration_is_read_as_it_was_written() {
        let slots = [Slot::GATE, OTHER];
        let config = config_of(&slots).unwrap();
        assert_eq!(config.as_bytes()[..8], [236, 2, 2, 0, 4, 0, 0, 0x80]);
        assert_eq!(config.as_bytes().len(), 124);
        assert_eq!(slots_in(&config).unwrap(), slots);
        assert!(config_of(&[Slot::GATE]).unwrap().is_frags == 1 && config.is_frags == 0);
        assert_eq!(slots_in(&DispatcherConfig { version: 3, ..config }), None);
        assert_eq!(slots_in(&DispatcherConfig { programs: 11, ..config }), None);
    }

    #[test]
    fn a_dispatcher_has_ten_slots() {
        assert!(config_of(&[OTHER; 10]).is_some());
        assert_eq!(config_of(&[OTHER; 11]), None);
    }

    #[test]
    fn programs_are_ordered_by_priority_then_by_name() {
        let before = |priority, name| Slot { priority, ..OTHER }.is_before_gate(name, "gate");
        assert!(before(9, "z") && before(10, "a") && !before(10, "z") && !before(11, "a"));
    }
}
