//! Evaluation of rules' conditions and loads: everything that precedes their verdicts.

use super::evaluation::{PacketState, PacketWalk};
use super::known_bits::{Bits, Truth};
use super::packet::{AddressClass, Device, NAME, RulePacket, Tracked};
use super::registers::Registers;
use super::sets::Value;
use super::xt_match;
use crate::netfilter::rule::{Comparison, NftExpression, REGISTERS, RegisterSource, RegisterSpan};

impl PacketWalk<'_> {
    /// Evaluates a condition or a load: whether the rule continues.
    pub(super) fn condition(&self, expression: &NftExpression, registers: &mut Registers, state: PacketState) -> Truth {
        match expression {
            NftExpression::Load(source, to) => return self.load(*source, *to, registers, state),
            NftExpression::Immediate(to, bytes) => registers.put_known(*to, bytes),
            NftExpression::Compare(of, how, with) => {
                let bits = registers.get(*of);
                return match how {
                    Comparison::Equal => bits.equals(with),
                    Comparison::Unequal => bits.equals(with).invert(true),
                    Comparison::Less => bits.is_less(with),
                    Comparison::LessOrEqual => bits.is_greater(with).invert(true),
                    Comparison::Greater => bits.is_greater(with),
                    Comparison::GreaterOrEqual => bits.is_less(with).invert(true),
                };
            }
            NftExpression::Range { of, ends: (low, high), inverted } => {
                return registers.get(*of).is_within(low, high).invert(*inverted);
            }
            NftExpression::Bitwise { from, to, mask, xor } => {
                let (mut value, mut known) = ([0; REGISTERS], [0; REGISTERS]);
                let bits = registers.get(*from);
                for at in 0..from.len {
                    known[at] = bits.known[at] | !mask[at];
                    value[at] = ((bits.value[at] & mask[at]) ^ xor[at]) & known[at];
                }
                let bits = Bits { value: &value[..from.len], known: &known[..from.len] };
                registers.put(RegisterSpan { at: *to, len: from.len }, bits);
            }
            NftExpression::ByteOrder(from, to, unit) => {
                let (mut value, mut known) = ([0; REGISTERS], [0; REGISTERS]);
                let bits = registers.get(*from);
                value[..from.len].copy_from_slice(bits.value);
                known[..from.len].copy_from_slice(bits.known);
                if cfg!(target_endian = "little") {
                    value[..from.len].chunks_mut(*unit).for_each(<[u8]>::reverse);
                    known[..from.len].chunks_mut(*unit).for_each(<[u8]>::reverse);
                }
                let bits = Bits { value: &value[..from.len], known: &known[..from.len] };
                registers.put(RegisterSpan { at: *to, len: from.len }, bits);
            }
            NftExpression::InSet(key, set, inverted) => {
                return self.rules.sets[*set].look_up(registers.get(*key), self.now(), |_, _| {}).invert(*inverted);
            }
            NftExpression::ValueOf(key, set, to) => {
                let mut values = Vec::new();
                let found =
                    self.rules.sets[*set].look_up(registers.get(*key), self.now(), |value, _| values.push(value));
                match values[..] {
                    [Value::Bytes(bytes)] if found == Truth::Yes => registers.put_known(*to, bytes),
                    _ => registers.forget(*to),
                }
                return found;
            }
            NftExpression::Match(xt_match::Match::InIpset { index, source, inverted }) => {
                let Some(set) = self.rules.ipsets.get(index) else { return Truth::Perhaps };
                let (at, len) = match (self.packet.v6, source) {
                    (false, true) => (12, 4),
                    (false, false) => (16, 4),
                    (true, true) => (8, 16),
                    (true, false) => (24, 16),
                };
                if !set.has_keys_of(len) {
                    return Truth::of(*inverted);
                }
                return set.look_up(self.packet.network().part(at, len), self.now(), |_, _| {}).invert(*inverted);
            }
            NftExpression::Match(of) => {
                let packet = RulePacket { tracked: state.tracked, ..*self.packet };
                return of.is_of(&packet, state.mark);
            }
            NftExpression::Perhaps(forgets) => {
                if *forgets {
                    registers.known.fill(0);
                    registers.value.fill(0);
                }
                return Truth::Perhaps;
            }
            _ => {}
        }
        Truth::Yes
    }

    fn load(&self, source: RegisterSource, to: RegisterSpan, registers: &mut Registers, state: PacketState) -> Truth {
        let packet = self.packet;
        match source {
            RegisterSource::Network(at) => registers.put(to, packet.network().part(at, to.len)),
            RegisterSource::Transport(at) => registers.put(to, packet.transport().part(at, to.len)),
            RegisterSource::Meta(key) => self.meta(key, to, registers, state),
            RegisterSource::Ct(key) => {
                // linux/netfilter/nf_tables.h: NFT_CT_STATE, NFT_CT_DIRECTION, NFT_CT_STATUS, NFT_CT_MARK.
                let tracked = state.tracked != Tracked::Unknown;
                let packet = RulePacket { tracked: state.tracked, ..*packet };
                match (key, xt_match::state(&packet)) {
                    (0, Some(state)) => registers.put_known(to, &state.to_ne_bytes()),
                    (1, Some(_)) => registers.put_known(to, &[packet.reply.into()]),
                    (2, Some(_)) => {
                        // `IPS_SRC_NAT` and `IPS_DST_NAT` are known to be clear: a translation would have been found.
                        let known = 0x30_u32.to_ne_bytes();
                        registers.put(to, Bits { value: &[0; 4], known: &known });
                    }
                    (3, Some(_)) if !self.rules.marks_connections => registers.put_known(to, &[0; 4]),
                    _ => registers.forget(to),
                }
                if !tracked && key != 0 {
                    return Truth::Perhaps;
                }
            }
            RegisterSource::Fib(result, flags) => return self.fib(result, flags, to, registers),
            RegisterSource::ExtensionHeader => registers.put_known(to, &[0]),
            RegisterSource::Unknown => {
                registers.forget(to);
                return Truth::Perhaps;
            }
        }
        Truth::Yes
    }

    /// linux/netfilter/nf_tables.h: `NFT_META_*`.
    fn meta(&self, key: u32, to: RegisterSpan, registers: &mut Registers, state: PacketState) {
        let packet = self.packet;
        let index = |device| match device {
            Device::None => Some(0),
            Device::Unknown => None,
            Device::Is(link) => Some(link.index),
        };
        let name = |device| match device {
            Device::None => Some([0; NAME]),
            Device::Unknown => None,
            Device::Is(link) => Some(link.name),
        };
        let mut put = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => registers.put_known(to, bytes),
            None => registers.forget(to),
        };
        match key {
            1 => put(Some(if packet.v6 { &[0x86, 0xdd] } else { &[8, 0] })),
            3 => {
                let (value, known) = (state.mark.value.to_ne_bytes(), state.mark.known.to_ne_bytes());
                registers.put(to, Bits { value: &value, known: &known });
            }
            4 => put(index(packet.input).map(u32::to_ne_bytes).as_ref().map(<[u8; 4]>::as_slice)),
            5 => put(index(packet.output).map(u32::to_ne_bytes).as_ref().map(<[u8; 4]>::as_slice)),
            6 => put(name(packet.input).as_ref().map(<[u8; NAME]>::as_slice)),
            7 => put(name(packet.output).as_ref().map(<[u8; NAME]>::as_slice)),
            15 => put(Some(if packet.v6 { &[10] } else { &[2] })),
            16 => put(Some(&[6])),
            // `PACKET_HOST`, as for all packets examined here.
            19 => put(Some(&[0])),
            _ => put(None),
        }
    }

    /// `NFT_FIB_RESULT_*` and `NFTA_FIB_F_*`.
    fn fib(&self, result: u32, flags: u32, to: RegisterSpan, registers: &mut Registers) -> Truth {
        const SADDR: u32 = 1;
        const DADDR: u32 = 2;
        const MARK: u32 = 4;
        const INPUT: u32 = 8;
        const OUTPUT: u32 = 16;
        const PRESENT: u32 = 32;
        let packet = self.packet;
        match result {
            // The type of an address, on any interface.
            3 if flags & (INPUT | OUTPUT | MARK) == 0 => {
                let class = if flags & SADDR != 0 { packet.source } else { packet.destination };
                match class {
                    AddressClass::Elsewhere => registers.put_known(to, &1_u32.to_ne_bytes()),
                    AddressClass::Local => registers.put_known(to, &2_u32.to_ne_bytes()),
                    AddressClass::Unknown => registers.forget(to),
                }
            }
            // The route back to a packet's source: endpoints' packets arrive on the interface by which packets to them
            // leave.
            1 | 2 if packet.reply && flags & (SADDR | DADDR | OUTPUT) == SADDR => match packet.input {
                Device::Is(_) if flags & PRESENT != 0 => registers.put_known(to, &[1]),
                Device::Is(link) if result == 1 => registers.put_known(to, &link.index.to_ne_bytes()),
                Device::Is(link) => registers.put_known(to, &link.name),
                _ => registers.forget(to),
            },
            _ => {
                registers.forget(to);
                return Truth::Perhaps;
            }
        }
        Truth::Yes
    }
}
