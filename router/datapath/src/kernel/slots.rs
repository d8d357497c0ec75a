//! Slots of libxdp's dispatcher: their order, and the dispatcher's configuration.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Slots of a dispatcher.
pub const SLOTS: usize = 10;
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

/// `struct xdp_dispatcher_config`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct DispatcherConfig {
    magic: u8,
    version: u8,
    programs: u8,
    is_frags: u8,
    continued: [u32; SLOTS],
    priorities: [u32; SLOTS],
    flags: [u32; SLOTS],
}

impl DispatcherConfig {
    /// That of a dispatcher with these slots; `None` if they are too many.
    pub fn of(slots: &[Slot]) -> Option<DispatcherConfig> {
        let programs = u8::try_from(slots.len()).ok().filter(|_| slots.len() <= SLOTS)?;
        let is_frags = u8::from(slots.iter().all(|slot| slot.flags & FRAGS != 0));
        let empty = DispatcherConfig::default();
        let mut config = DispatcherConfig { magic: MAGIC, version: VERSION, programs, is_frags, ..empty };
        for (number, slot) in slots.iter().enumerate() {
            config.continued[number] = slot.continued;
            config.priorities[number] = slot.priority;
            config.flags[number] = slot.flags;
        }
        Some(config)
    }

    /// The slots that are used; `None` if the version is another one.
    pub fn slots(&self) -> Option<Vec<Slot>> {
        let slots = usize::from(self.programs);
        if (self.magic, self.version) != (MAGIC, VERSION) || slots > SLOTS {
            return None;
        }
        let slot = |number: usize| Slot {
            continued: self.continued[number],
            priority: self.priorities[number],
            flags: self.flags[number],
        };
        Some((0..slots).map(slot).collect())
    }

    /// Whether all programs handle packets in several parts.
    pub fn is_frags(&self) -> bool {
        self.is_frags != 0
    }
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
    use super::*;

    const OTHER: Slot = Slot { continued: 1 << 31, priority: 50, flags: 0 };

    #[test]
    fn a_configuration_is_read_as_it_was_written() {
        let slots = [Slot::GATE, OTHER];
        let config = DispatcherConfig::of(&slots).unwrap();
        assert_eq!(config.as_bytes()[..8], [236, 2, 2, 0, 4, 0, 0, 0x80]);
        assert_eq!(config.as_bytes().len(), 124);
        assert_eq!(config.slots().unwrap(), slots);
        assert!(DispatcherConfig::of(&[Slot::GATE]).unwrap().is_frags() && !config.is_frags());
        assert_eq!(DispatcherConfig { version: 3, ..config }.slots(), None);
        assert_eq!(DispatcherConfig { programs: 11, ..config }.slots(), None);
    }

    #[test]
    fn a_dispatcher_has_ten_slots() {
        assert!(DispatcherConfig::of(&[OTHER; 10]).is_some());
        assert_eq!(DispatcherConfig::of(&[OTHER; 11]), None);
    }

    #[test]
    fn programs_are_ordered_by_priority_then_by_name() {
        let before = |priority, name| Slot { priority, ..OTHER }.is_before_gate(name, "gate");
        assert!(before(9, "z") && before(10, "a") && !before(10, "z") && !before(11, "a"));
    }
}
