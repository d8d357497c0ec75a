//! The effect that rules may have on a partly known packet: each rule matches, does not match, or may match.

use std::fmt::Write;
use std::sync::Arc;

use super::known_bits::{KnownBits, Truth};
use super::packet::{Device, Interface, RulePacket, Tracked};
use super::rules::{Base, Chain, ChainType, Hook, Ruleset};
use super::sets::Value;
use crate::netfilter::registers::Registers;
use crate::netfilter::rule::{Comparison, Effect, NftExpression, NftRule, RegisterSource};
use crate::netfilter::verdict::RuleVerdict;

/// Maximum depth of jumps between chains, as in the kernel (`NFT_JUMP_STACK_SIZE`).
const DEPTH: usize = 16;
/// Most rules evaluated for one packet.
const STEPS: u32 = 200_000;

/// The effects of rules that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectFilter {
    /// Any effect on a packet.
    Anything,
    /// Whether it is delivered to another destination than its own, or with another source.
    Diverted,
    /// Whether it is certainly lost, at this moment.
    Lost,
}

/// The possible effect on a packet and the rule that has it, as `explain` prints it: "rule 7 of chain OUTPUT in table
/// ip filter may drop packets". The sentence may be continued.
pub type Harm = Arc<str>;

/// The certain loss of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The rule, and its effect.
    pub why: Harm,
    /// The sender gets an ICMP error or a reset.
    pub rejected: bool,
}

/// The known state of a packet after rules have processed it.
#[derive(Clone, Copy, Debug)]
pub struct PacketState {
    pub(super) mark: KnownBits,
    pub(super) tracked: Tracked,
}

impl PacketState {
    /// The state before any rule has processed the packet.
    pub fn of(packet: &RulePacket) -> PacketState {
        PacketState { mark: KnownBits::of(0), tracked: packet.tracked }
    }

    fn or(self, other: PacketState) -> PacketState {
        let tracked = if self.tracked == other.tracked { self.tracked } else { Tracked::Unknown };
        PacketState { mark: self.mark.or(other.mark), tracked }
    }

    /// True if the packet is certainly tracked: no rule may have exempted it.
    pub fn is_tracked(&self) -> bool {
        self.tracked != Tracked::Unknown
    }
}

/// Passes a packet through the base chains of a hook.
///
/// # Errors
/// The effect that a rule may have on it.
pub fn pass(
    rules: &Ruleset,
    hook: Hook,
    packet: &RulePacket,
    state: PacketState,
    effects: EffectFilter,
) -> Result<PacketState, Harm> {
    // For a packet that does not pass, nothing more is examined.
    Ok(PacketWalk::new(rules, hook, packet, effects).lead(state)?.unwrap_or(state))
}

/// The same for the question whether a packet is lost.
///
/// # Errors
/// The loss, if it is certain, with the last of the rules that may have caused it.
pub fn arrive(rules: &Ruleset, hook: Hook, packet: &RulePacket, state: PacketState) -> Result<PacketState, Loss> {
    let mut walk = PacketWalk::new(rules, hook, packet, EffectFilter::Lost);
    match walk.lead(state) {
        Ok(Some(state)) => Ok(state),
        Ok(None) => Err(walk.loss.unwrap_or_else(|| Loss { why: "a rule drops packets".into(), rejected: false })),
        // Too many rules.
        Err(_) => Ok(state),
    }
}

fn said(words: std::fmt::Arguments<'_>) -> Harm {
    words.to_string().into()
}

/// A chain's name in `nft`'s terms.
fn place(chain: &Chain) -> String {
    format!("chain {} in table {} {}", chain.name, chain.family.name(), chain.table)
}

/// The exits of a chain, each with the packet's known state there; `None` if it does not take that exit.
#[derive(Clone, Copy, Debug, Default)]
struct ChainExits {
    /// At the chain's end, or by `return`.
    falls: Option<PacketState>,
    /// By a verdict that ends the base chain.
    accepted: Option<PacketState>,
}

fn either(a: Option<PacketState>, b: Option<PacketState>) -> Option<PacketState> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.or(b)),
        (one, other) => one.or(other),
    }
}

/// The evaluation of one packet.
pub struct PacketWalk<'a> {
    pub(super) rules: &'a Ruleset,
    hook: Hook,
    pub(super) packet: &'a RulePacket,
    effects: EffectFilter,
    steps: u32,
    /// A changed mark causes another route look-up.
    routes: bool,
    /// The last rule after which no packet continues.
    loss: Option<Loss>,
}

/// Continuation after a rule.
enum Next {
    /// The next rule, for the packets that continue.
    Rule(PacketState),
    /// No further rule of this chain.
    Nothing,
}

impl<'a> PacketWalk<'a> {
    fn new(rules: &'a Ruleset, hook: Hook, packet: &'a RulePacket, effects: EffectFilter) -> PacketWalk<'a> {
        PacketWalk { rules, hook, packet, effects, steps: STEPS, routes: false, loss: None }
    }

    /// True if conditions that hold at this moment suffice.
    pub(super) fn now(&self) -> bool {
        self.effects == EffectFilter::Lost
    }

    /// The packet's known state after all base chains; `None` if it does not get there.
    fn lead(&mut self, mut state: PacketState) -> Result<Option<PacketState>, Harm> {
        let rules = self.rules;
        for at in &rules.bases {
            let chain = &rules.chains[*at];
            let Some(base) = chain.base.as_ref().filter(|base| base.hook == self.hook) else { continue };
            let idle = chain.inert && !base.drops || chain.plain && self.effects == EffectFilter::Diverted;
            if idle || !chain.family.sees(self.packet.v6) || !self.comes_to(base, state) {
                continue;
            }
            self.routes = base.kind == ChainType::Route && self.hook == Hook::Output;
            let after = self.chain(chain, state, 0)?;
            if base.drops && after.falls.is_some() {
                let why = said(format_args!("the policy of {} may drop packets", place(chain)));
                if self.effects == EffectFilter::Anything {
                    return Err(why);
                }
                self.loss = Some(Loss { why, rejected: false });
            }
            match either(after.falls.filter(|_| !base.drops), after.accepted) {
                Some(after) => state = after,
                None => return Ok(None),
            }
        }
        Ok(Some(state))
    }

    /// True if packets reach a base chain at all.
    fn comes_to(&self, base: &Base, state: PacketState) -> bool {
        if base.kind == ChainType::Nat && state.tracked == Tracked::Established {
            return false;
        }
        let device = match base.hook {
            Hook::Ingress => self.packet.input,
            Hook::Egress => self.packet.output,
            _ => return true,
        };
        match device {
            Device::Is(link) => {
                base.devices.is_empty() || base.devices.iter().any(|name| Interface::new(0, name).name == link.name)
            }
            _ => true,
        }
    }

    fn chain(&mut self, chain: &Chain, state: PacketState, depth: usize) -> Result<ChainExits, Harm> {
        let mut ways = ChainExits::default();
        let mut state = state;
        // Unknown at first: rules load the values that they compare.
        let mut registers = Registers::new();
        let packet = self.packet;
        for at in chain.index.rules_for(packet) {
            let rule = &chain.rules[at];
            self.steps = self.steps.checked_sub(1).filter(|_| depth < DEPTH).ok_or_else(|| {
                said(format_args!("{} is too long to determine what the host does with packets", place(chain)))
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

    /// True if a rule first compares a header field with a different value, as most rules of long chains do.
    fn is_plainly_of_others(&self, rule: &NftRule) -> bool {
        let [NftExpression::Load(source, to), NftExpression::Compare(of, Comparison::Equal, bytes), ..] =
            &rule.expressions[..]
        else {
            return false;
        };
        let (header, at) = match source {
            RegisterSource::Network(at) => (self.packet.network(), *at),
            RegisterSource::Transport(at) => (self.packet.transport(), *at),
            _ => return false,
        };
        to.at == of.at && of.len <= to.len && header.part(at, of.len).equals(bytes) == Truth::No
    }

    fn rule(
        &mut self,
        (chain, rule): (&Chain, &NftRule),
        before: PacketState,
        ways: &mut ChainExits,
        registers: &mut Registers,
        depth: usize,
    ) -> Result<Next, Harm> {
        let mut state = before;
        // State of the packets that a condition stopped.
        let mut stopped: Option<PacketState> = None;
        for expression in &rule.expressions {
            let goes_on = match expression {
                NftExpression::Effect(effect) => {
                    self.effect(chain, rule, effect)?;
                    match effect {
                        Effect::Reject => {
                            self.lose(chain, rule, true);
                            return Ok(next(stopped));
                        }
                        // The packet may leave the path, past all later rules.
                        Effect::Divert | Effect::Copy | Effect::Unknown(_) => {
                            ways.accepted = either(ways.accepted, Some(state));
                        }
                        Effect::Translate | Effect::Rewrite => {}
                    }
                    // Translation ends a chain. A walk for other effects continues as if it did not.
                    Truth::Yes
                }
                NftExpression::SetMark(from) => {
                    self.mark(chain, rule, &mut state, registers.word(*from))?;
                    Truth::Yes
                }
                NftExpression::Mark(change) => {
                    let mark = change.map_or(KnownBits::UNKNOWN, |(mask, value)| state.mark.replaced(mask, value));
                    self.mark(chain, rule, &mut state, mark)?;
                    Truth::Yes
                }
                NftExpression::NoTrack => {
                    state.tracked = Tracked::Unknown;
                    Truth::Yes
                }
                NftExpression::Verdict(verdict) => {
                    if *verdict == RuleVerdict::Continue {
                        continue;
                    }
                    let after = self.verdict(chain, rule, *verdict, state, ways, depth)?;
                    return Ok(next(either(stopped, after)));
                }
                NftExpression::VerdictOf(key, set) => {
                    let mut verdicts = Vec::new();
                    let rules = self.rules;
                    let found = rules.sets[*set]
                        .look_up(registers.get(*key), self.now(), |value, is| verdicts.push((value, is)));
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
                Truth::Perhaps => stopped = either(stopped, Some(state)),
                Truth::Yes => {}
            }
        }
        Ok(next(either(stopped, Some(state))))
    }

    /// Applies a verdict; returns the state of the packets that continue with the next rule.
    fn verdict(
        &mut self,
        chain: &Chain,
        rule: &NftRule,
        verdict: RuleVerdict,
        state: PacketState,
        ways: &mut ChainExits,
        depth: usize,
    ) -> Result<Option<PacketState>, Harm> {
        let everything = self.effects == EffectFilter::Anything;
        match verdict {
            RuleVerdict::Continue => return Ok(Some(state)),
            RuleVerdict::Accept => ways.accepted = either(ways.accepted, Some(state)),
            RuleVerdict::Return => ways.falls = either(ways.falls, Some(state)),
            RuleVerdict::Drop if everything => return Err(self.harm(chain, rule, "drop packets")),
            RuleVerdict::Queue if everything => return Err(self.harm(chain, rule, "queue packets for a program")),
            RuleVerdict::Drop => self.lose(chain, rule, false),
            RuleVerdict::Queue => ways.accepted = either(ways.accepted, Some(state)),
            RuleVerdict::Jump(to) | RuleVerdict::Goto(to) => {
                let rules = self.rules;
                let inner = self.chain(&rules.chains[to], state, depth + 1)?;
                ways.accepted = either(ways.accepted, inner.accepted);
                if let RuleVerdict::Jump(_) = verdict {
                    return Ok(inner.falls);
                }
                ways.falls = either(ways.falls, inner.falls);
            }
        }
        Ok(None)
    }

    fn mark(&self, chain: &Chain, rule: &NftRule, state: &mut PacketState, mark: KnownBits) -> Result<(), Harm> {
        if self.routes && self.effects == EffectFilter::Anything && mark != state.mark {
            return Err(self.harm(chain, rule, "mark for other routes packets"));
        }
        state.mark = mark;
        Ok(())
    }

    /// Records that no packet continues after a rule.
    fn lose(&mut self, chain: &Chain, rule: &NftRule, rejected: bool) {
        if self.effects == EffectFilter::Lost {
            let why = self.harm(chain, rule, if rejected { "reject packets" } else { "drop packets" });
            self.loss = Some(Loss { why, rejected });
        }
    }

    fn effect(&self, chain: &Chain, rule: &NftRule, effect: &Effect) -> Result<(), Harm> {
        let diverts = matches!(effect, Effect::Translate | Effect::Divert | Effect::Copy | Effect::Unknown(_));
        if self.effects == EffectFilter::Lost || self.effects == EffectFilter::Diverted && !diverts {
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

    fn harm(&self, chain: &Chain, rule: &NftRule, what: &str) -> Harm {
        let mut words = format!("rule {} of {} may {what}", rule.handle, place(chain));
        if chain.base.is_none() {
            // Its name alone does not show from which hook packets reach it.
            _ = write!(words, " ({})", hook_name(self.hook));
        }
        words.into()
    }
}

fn next(state: Option<PacketState>) -> Next {
    state.map_or(Next::Nothing, Next::Rule)
}

const fn hook_name(hook: Hook) -> &'static str {
    match hook {
        Hook::Ingress => "ingress",
        Hook::Prerouting => "PREROUTING",
        Hook::Input => "INPUT",
        Hook::Output => "OUTPUT",
        Hook::Postrouting => "POSTROUTING",
        Hook::Egress => "egress",
    }
}
