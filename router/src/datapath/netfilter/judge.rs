//! What rules may do with a packet of which some is not known: each rule matches, or not, or perhaps.

use std::fmt::Write;
use std::sync::Arc;

use super::bits::{Bits, Truth, Word};
use super::packet::{Class, Device, Link, NAME, Packet, Tracked};
use super::rules::{
    Base, Chain, Comparison, Effect, Expression, Hook, Kind, REGISTERS, Rule, Ruleset, Source, Span, Verdict,
};
use super::sets::Value;
use super::xt;

/// Chains that call one another: as the kernel has it (`NFT_JUMP_STACK_SIZE`).
const DEPTH: usize = 16;
/// Rules that are looked at for one packet at most.
const STEPS: u32 = 200_000;

/// What about rules counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Anything that would be done to a packet.
    Anything,
    /// Whether it gets to somebody else than to whom it is addressed, or as somebody else's.
    Diverted,
}

/// What may be done to a packet, and by which rule, as `explain` says it: "rule 7 of chain OUTPUT in table ip filter may
/// drop packets". The sentence goes on.
pub type Harm = Arc<str>;

/// What is known of a packet after rules have seen it.
#[derive(Clone, Copy, Debug)]
pub struct State {
    mark: Word,
    tracked: Tracked,
}

impl State {
    /// Before any rule has seen the packet.
    pub fn of(packet: &Packet) -> State {
        State { mark: Word::of(0), tracked: packet.tracked }
    }

    fn or(self, other: State) -> State {
        let tracked = if self.tracked == other.tracked { self.tracked } else { Tracked::Unknown };
        State { mark: self.mark.or(other.mark), tracked }
    }

    /// Whether connection tracking may have been told to leave the packet alone.
    pub fn is_tracked(&self) -> bool {
        self.tracked != Tracked::Unknown
    }
}

/// Leads a packet through the base chains of a hook.
///
/// # Errors
/// What a rule may do to it.
pub fn pass(rules: &Ruleset, hook: Hook, packet: &Packet, state: State, asked: Asked) -> Result<State, Harm> {
    let mut walk = Walk { rules, hook, packet, asked, steps: STEPS, routes: false };
    let mut state = state;
    for at in &rules.bases {
        let chain = &rules.chains[*at];
        let Some(base) = chain.base.as_ref().filter(|base| base.hook == hook) else { continue };
        let idle = chain.inert && !base.drops;
        if idle || !chain.family.sees(packet.v6) || !walk.comes_to(base, state) {
            continue;
        }
        walk.routes = base.kind == Kind::Route && hook == Hook::Output;
        let after = walk.chain(chain, state, 0)?;
        if base.drops && asked == Asked::Anything && after.falls.is_some() {
            return Err(said(format_args!("the policy of {} may drop packets", place(chain))));
        }
        state = match (after.falls.filter(|_| !base.drops), after.accepted) {
            (Some(falls), Some(accepted)) => falls.or(accepted),
            (Some(state), None) | (None, Some(state)) => state,
            // It comes no further, which is not asked.
            (None, None) => return Ok(state),
        };
    }
    Ok(state)
}

fn said(words: std::fmt::Arguments<'_>) -> Harm {
    words.to_string().into()
}

/// A chain as `nft` names it.
fn place(chain: &Chain) -> String {
    format!("chain {} in table {} {}", chain.name, chain.family.name(), chain.table)
}

/// The ways out of a chain, each with what is known of the packet there; `None` for ways that it does not take.
#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    /// At the end, or by `return`.
    falls: Option<State>,
    /// By a verdict that ends the base chain.
    accepted: Option<State>,
}

fn either(a: Option<State>, b: Option<State>) -> Option<State> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.or(b)),
        (one, other) => one.or(other),
    }
}

struct Walk<'a> {
    rules: &'a Ruleset,
    hook: Hook,
    packet: &'a Packet,
    asked: Asked,
    steps: u32,
    /// A changed mark leads to another route.
    routes: bool,
}

/// Bytes that rules compute with.
struct Registers {
    value: [u8; REGISTERS],
    known: [u8; REGISTERS],
}

impl Registers {
    fn get(&self, span: Span) -> Bits<'_> {
        Bits { value: &self.value, known: &self.known }.part(span.at, span.len)
    }

    /// Puts bytes there; what is beyond them is not known.
    fn put(&mut self, span: Span, bits: Bits<'_>) {
        let range = span.at..span.at + span.len;
        let (value, known) = (&mut self.value[range.clone()], &mut self.known[range]);
        value.fill(0);
        known.fill(0);
        value.iter_mut().zip(bits.value).for_each(|(to, from)| *to = *from);
        known.iter_mut().zip(bits.known).for_each(|(to, from)| *to = *from);
    }

    fn put_known(&mut self, span: Span, bytes: &[u8]) {
        self.put(span, Bits { value: bytes, known: &[0xff; REGISTERS][..bytes.len().min(REGISTERS)] });
    }

    fn forget(&mut self, span: Span) {
        self.put(span, Bits { value: &[], known: &[] });
    }

    fn word(&self, span: Span) -> Word {
        let bits = self.get(Span { at: span.at, len: 4 });
        let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        let known = number(bits.known);
        Word { value: number(bits.value) & known, known }
    }
}

/// What comes after a rule.
enum Next {
    /// The next one, for the packets that went on.
    Rule(State),
    /// None of this chain's.
    Nothing,
}

impl Walk<'_> {
    /// Whether packets come to a base chain at all.
    fn comes_to(&self, base: &Base, state: State) -> bool {
        if base.kind == Kind::Nat && state.tracked == Tracked::Established {
            return false;
        }
        match self.packet.input {
            Device::Is(link) if base.hook == Hook::Ingress && !base.devices.is_empty() => {
                base.devices.iter().any(|name| Link::new(0, name).name == link.name)
            }
            _ => true,
        }
    }

    fn chain(&mut self, chain: &Chain, state: State, depth: usize) -> Result<Ways, Harm> {
        let mut ways = Ways::default();
        let mut state = state;
        // Rules load what they compare.
        let mut registers = Registers { value: [0; REGISTERS], known: [0; REGISTERS] };
        for rule in &chain.rules {
            self.steps = self.steps.checked_sub(1).filter(|_| depth < DEPTH).ok_or_else(|| {
                said(format_args!("{} is too long to tell what the host does with packets", place(chain)))
            })?;
            if self.is_plainly_of_others(rule) {
                continue;
            }
            match self.rule((chain, rule), state, &mut ways, &mut registers, depth)? {
                Next::Rule(after) => state = after,
                Next::Nothing => return Ok(ways),
            }
        }
        ways.falls = either(ways.falls, Some(state));
        Ok(ways)
    }

    /// Whether a rule begins with a field of a header that is another one: most of many rules do.
    fn is_plainly_of_others(&self, rule: &Rule) -> bool {
        let [Expression::Load(source, to), Expression::Compare(of, Comparison::Equal, bytes), ..] =
            &rule.expressions[..]
        else {
            return false;
        };
        let (header, at) = match source {
            Source::Network(at) => (self.packet.network(), *at),
            Source::Transport(at) => (self.packet.transport(), *at),
            _ => return false,
        };
        to.at == of.at && of.len <= to.len && header.part(at, of.len).equals(bytes) == Truth::No
    }

    fn rule(
        &mut self,
        (chain, rule): (&Chain, &Rule),
        before: State,
        ways: &mut Ways,
        registers: &mut Registers,
        depth: usize,
    ) -> Result<Next, Harm> {
        let (mut state, mut sure) = (before, Truth::Yes);
        // Of the packets that a condition stopped.
        let mut stopped: Option<State> = None;
        for expression in &rule.expressions {
            let goes_on = match expression {
                Expression::Effect(effect) => {
                    self.effect(chain, rule, effect)?;
                    if sure == Truth::Yes && matches!(effect, Effect::Reject) {
                        return Ok(Next::Nothing);
                    }
                    // Translation ends a chain; whoever asks for something else than that goes on as if it did not.
                    Truth::Yes
                }
                Expression::SetMark(from) => {
                    self.mark(chain, rule, &mut state, registers.word(*from))?;
                    Truth::Yes
                }
                Expression::Mark(change) => {
                    let mark = change.map_or(Word::UNKNOWN, |(mask, value)| state.mark.replaced(mask, value));
                    self.mark(chain, rule, &mut state, mark)?;
                    Truth::Yes
                }
                Expression::NoTrack => {
                    state.tracked = Tracked::Unknown;
                    Truth::Yes
                }
                Expression::Verdict(verdict) => {
                    if *verdict == Verdict::Continue {
                        continue;
                    }
                    let after = self.verdict(chain, rule, *verdict, state, ways, depth)?;
                    return Ok(next(either(stopped, after)));
                }
                Expression::VerdictOf(key, set) => {
                    let mut verdicts = Vec::new();
                    let rules = self.rules;
                    let found = rules.sets[*set].look_up(registers.get(*key), |value, is| verdicts.push((value, is)));
                    let mut after = (found != Truth::Yes).then_some(state);
                    for (value, is) in verdicts {
                        let Value::Verdict(verdict) = value else { continue };
                        after = either(after, self.verdict(chain, rule, *verdict, state, ways, depth)?);
                        if is == Truth::Yes {
                            break;
                        }
                    }
                    return Ok(next(either(stopped, after)));
                }
                condition => self.condition(condition, registers, state),
            };
            match goes_on {
                Truth::No => return Ok(next(either(stopped, Some(state)))),
                Truth::Perhaps => {
                    stopped = either(stopped, Some(state));
                    sure = Truth::Perhaps;
                }
                Truth::Yes => {}
            }
        }
        Ok(next(either(stopped, Some(state))))
    }

    /// What becomes of packets with a verdict; those that come to the next rule.
    fn verdict(
        &mut self,
        chain: &Chain,
        rule: &Rule,
        verdict: Verdict,
        state: State,
        ways: &mut Ways,
        depth: usize,
    ) -> Result<Option<State>, Harm> {
        let everything = self.asked == Asked::Anything;
        match verdict {
            Verdict::Continue => return Ok(Some(state)),
            Verdict::Accept => ways.accepted = either(ways.accepted, Some(state)),
            Verdict::Return => ways.falls = either(ways.falls, Some(state)),
            Verdict::Drop if everything => return Err(self.harm(chain, rule, "drop packets")),
            Verdict::Queue if everything => return Err(self.harm(chain, rule, "queue packets for a program")),
            Verdict::Drop => {}
            Verdict::Queue => ways.accepted = either(ways.accepted, Some(state)),
            Verdict::Jump(to) | Verdict::Goto(to) => {
                let rules = self.rules;
                let inner = self.chain(&rules.chains[to], state, depth + 1)?;
                ways.accepted = either(ways.accepted, inner.accepted);
                if let Verdict::Jump(_) = verdict {
                    return Ok(inner.falls);
                }
                ways.falls = either(ways.falls, inner.falls);
            }
        }
        Ok(None)
    }

    fn mark(&self, chain: &Chain, rule: &Rule, state: &mut State, mark: Word) -> Result<(), Harm> {
        if self.routes && self.asked == Asked::Anything && mark != state.mark {
            return Err(self.harm(chain, rule, "mark for other routes packets"));
        }
        state.mark = mark;
        Ok(())
    }

    fn effect(&self, chain: &Chain, rule: &Rule, effect: &Effect) -> Result<(), Harm> {
        let diverts = matches!(effect, Effect::Translate | Effect::Divert | Effect::Copy | Effect::Unknown(_));
        if self.asked == Asked::Diverted && !diverts {
            return Ok(());
        }
        Err(match effect {
            Effect::Reject => self.harm(chain, rule, "reject packets"),
            Effect::Translate => self.harm(chain, rule, "translate addresses or ports of packets"),
            Effect::Divert => self.harm(chain, rule, "divert packets"),
            Effect::Rewrite => self.harm(chain, rule, "rewrite headers of packets"),
            Effect::Copy => self.harm(chain, rule, "copy packets"),
            Effect::Unknown(name) => self.harm(chain, rule, &format!("have the effect `{name}` on packets")),
        })
    }

    fn harm(&self, chain: &Chain, rule: &Rule, what: &str) -> Harm {
        let mut words = format!("rule {} of {} may {what}", rule.handle, place(chain));
        if chain.base.is_none() {
            // Its name alone tells nobody when packets come there.
            _ = write!(words, " ({})", hook_name(self.hook));
        }
        words.into()
    }

    /// A condition, or something that is loaded: whether the rule goes on.
    fn condition(&self, expression: &Expression, registers: &mut Registers, state: State) -> Truth {
        match expression {
            Expression::Load(source, to) => return self.load(*source, *to, registers, state),
            Expression::Immediate(to, bytes) => registers.put_known(*to, bytes),
            Expression::Compare(of, how, with) => {
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
            Expression::Range { of, ends: (low, high), inverted } => {
                return registers.get(*of).is_within(low, high).invert(*inverted);
            }
            Expression::Bitwise { from, to, mask, xor } => {
                let (mut value, mut known) = ([0; REGISTERS], [0; REGISTERS]);
                let bits = registers.get(*from);
                for at in 0..from.len {
                    known[at] = bits.known[at] | !mask[at];
                    value[at] = ((bits.value[at] & mask[at]) ^ xor[at]) & known[at];
                }
                let bits = Bits { value: &value[..from.len], known: &known[..from.len] };
                registers.put(Span { at: *to, len: from.len }, bits);
            }
            Expression::ByteOrder(from, to, unit) => {
                let (mut value, mut known) = ([0; REGISTERS], [0; REGISTERS]);
                let bits = registers.get(*from);
                value[..from.len].copy_from_slice(bits.value);
                known[..from.len].copy_from_slice(bits.known);
                if cfg!(target_endian = "little") {
                    value[..from.len].chunks_mut(*unit).for_each(<[u8]>::reverse);
                    known[..from.len].chunks_mut(*unit).for_each(<[u8]>::reverse);
                }
                let bits = Bits { value: &value[..from.len], known: &known[..from.len] };
                registers.put(Span { at: *to, len: from.len }, bits);
            }
            Expression::InSet(key, set, inverted) => {
                return self.rules.sets[*set].look_up(registers.get(*key), |_, _| {}).invert(*inverted);
            }
            Expression::ValueOf(key, set, to) => {
                let mut values = Vec::new();
                let found = self.rules.sets[*set].look_up(registers.get(*key), |value, _| values.push(value));
                match values[..] {
                    [Value::Bytes(bytes)] if found == Truth::Yes => registers.put_known(*to, bytes),
                    _ => registers.forget(*to),
                }
                return found;
            }
            Expression::Match(xt::Match::InIpset { index, source, inverted }) => {
                let Some(set) = self.rules.ipsets.get(index) else { return Truth::Perhaps };
                let (at, len) = match (self.packet.v6, source) {
                    (false, true) => (12, 4),
                    (false, false) => (16, 4),
                    (true, true) => (8, 16),
                    (true, false) => (24, 16),
                };
                return set.look_up(self.packet.network().part(at, len), |_, _| {}).invert(*inverted);
            }
            Expression::Match(of) => {
                let packet = Packet { tracked: state.tracked, ..*self.packet };
                return of.is_of(&packet, state.mark);
            }
            Expression::Perhaps(forgets) => {
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

    fn load(&self, source: Source, to: Span, registers: &mut Registers, state: State) -> Truth {
        let packet = self.packet;
        match source {
            Source::Network(at) => registers.put(to, packet.network().part(at, to.len)),
            Source::Transport(at) => registers.put(to, packet.transport().part(at, to.len)),
            Source::Meta(key) => self.meta(key, to, registers, state),
            Source::Ct(key) => {
                // linux/netfilter/nf_tables.h: NFT_CT_STATE, NFT_CT_DIRECTION, NFT_CT_STATUS, NFT_CT_MARK.
                let tracked = state.tracked != Tracked::Unknown;
                let packet = Packet { tracked: state.tracked, ..*packet };
                match (key, xt::state(&packet)) {
                    (0, Some(state)) => registers.put_known(to, &state.to_ne_bytes()),
                    (1, Some(_)) => registers.put_known(to, &[packet.reply.into()]),
                    (2, Some(_)) => {
                        // Its addresses are not translated: that would have been found.
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
            Source::Fib(result, flags) => return self.fib(result, flags, to, registers),
            Source::ExtensionHeader => registers.put_known(to, &[0]),
            Source::Unknown => {
                registers.forget(to);
                return Truth::Perhaps;
            }
        }
        Truth::Yes
    }

    /// linux/netfilter/nf_tables.h: `NFT_META_*`.
    fn meta(&self, key: u32, to: Span, registers: &mut Registers, state: State) {
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
            // For this host, as of all packets that are asked for.
            19 => put(Some(&[0])),
            _ => put(None),
        }
    }

    /// `NFT_FIB_RESULT_*` and `NFTA_FIB_F_*`.
    fn fib(&self, result: u32, flags: u32, to: Span, registers: &mut Registers) -> Truth {
        const SADDR: u32 = 1;
        const DADDR: u32 = 2;
        const MARK: u32 = 4;
        const INPUT: u32 = 8;
        const OUTPUT: u32 = 16;
        const PRESENT: u32 = 32;
        let packet = self.packet;
        match result {
            // The type of an address, whatever the interface.
            3 if flags & (INPUT | OUTPUT | MARK) == 0 => {
                let class = if flags & SADDR != 0 { packet.source } else { packet.destination };
                match class {
                    Class::Elsewhere => registers.put_known(to, &1_u32.to_ne_bytes()),
                    Class::Local => registers.put_known(to, &2_u32.to_ne_bytes()),
                    Class::Unknown => registers.forget(to),
                }
            }
            // The way back to where a packet came from: endpoints' packets come in where packets to them leave.
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

fn next(state: Option<State>) -> Next {
    state.map_or(Next::Nothing, Next::Rule)
}

const fn hook_name(hook: Hook) -> &'static str {
    match hook {
        Hook::Ingress => "ingress",
        Hook::Prerouting => "PREROUTING",
        Hook::Input => "INPUT",
        Hook::Output => "OUTPUT",
        Hook::Postrouting => "POSTROUTING",
    }
}
