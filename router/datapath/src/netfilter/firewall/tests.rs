//! Verdicts on connections under rules of nftables and `iptables`, by kind of match.

use super::*;
use crate::netfilter::index::RuleIndex;
use crate::netfilter::rule::{Comparison, Effect, NftExpression, NftRule, RegisterSource, RegisterSpan};
use crate::netfilter::rules::{Base, Chain, ChainType, Hook, NftFamily};
use crate::netfilter::verdict::RuleVerdict;

const REGISTER: usize = 16;
const NEW: u32 = 8;
const ESTABLISHED: u32 = 2;

impl Firewall {
    /// A firewall whose rules cannot be read.
    pub(crate) fn unread(why: &str) -> Self {
        Firewall { unreadable: Some(why.into()), ..Firewall::default() }
    }
}

/// Continues if bytes of the IP header, or of the TCP header, equal these.
fn is(source: RegisterSource, bytes: &[u8]) -> Vec<NftExpression> {
    let span = RegisterSpan { at: REGISTER, len: bytes.len() };
    vec![NftExpression::Load(source, span), NftExpression::Compare(span, Comparison::Equal, bytes.into())]
}

fn to(address: [u8; 4]) -> Vec<NftExpression> {
    is(RegisterSource::Network(16), &address)
}

fn from(address: [u8; 4]) -> Vec<NftExpression> {
    is(RegisterSource::Network(12), &address)
}

fn to_port(port: u16) -> Vec<NftExpression> {
    is(RegisterSource::Transport(2), &port.to_be_bytes())
}

fn marked(mark: u32) -> Vec<NftExpression> {
    is(RegisterSource::Meta(3), &mark.to_ne_bytes())
}

fn in_state(state: u32) -> Vec<NftExpression> {
    is(RegisterSource::Ct(0), &state.to_ne_bytes())
}

fn leaves_by(name: &str) -> Vec<NftExpression> {
    is(RegisterSource::Meta(7), name.as_bytes())
}

fn does(verdict: RuleVerdict) -> Vec<NftExpression> {
    vec![NftExpression::Verdict(verdict)]
}

fn translates() -> Vec<NftExpression> {
    vec![NftExpression::Effect(Effect::Translate)]
}

fn perhaps() -> Vec<NftExpression> {
    vec![NftExpression::Perhaps(false)]
}

/// A chain with rules whose handles count from 1.
fn chain(name: &str, hook: Option<(Hook, ChainType, bool)>, rules: &[&[Vec<NftExpression>]]) -> Chain {
    let rules = rules.iter().enumerate();
    let rules = rules.map(|(at, rule)| NftRule { handle: at as u64 + 1, expressions: rule.concat() }).collect();
    let base = hook.map(|(hook, kind, drops)| Base { hook, priority: 0, kind, drops, devices: Vec::new() });
    Chain {
        family: NftFamily::Ip,
        table: "t".into(),
        name: name.into(),
        base,
        rules,
        index: RuleIndex::default(),
        inert: false,
        plain: false,
    }
}

fn output(rules: &[&[Vec<NftExpression>]]) -> Chain {
    chain("OUTPUT", Some((Hook::Output, ChainType::Filter, false)), rules)
}

fn concerns(chains: Vec<Chain>) -> Option<String> {
    let link = Interface::new(7, "back");
    let dial = KernelDial { source: [10, 99, 1, 1].into(), to: SocketAddr::from(([10, 99, 1, 2], 9000)), link };
    judge_dial(&Ruleset::new(chains, Vec::new(), false), dial, AddressClass::Elsewhere)
        .err()
        .map(|harm| harm.to_string())
}

const ENDPOINT: [u8; 4] = [10, 99, 1, 2];
const OTHER: [u8; 4] = [10, 99, 1, 3];

/// An attribute of netlink (netlink(7)), padded.
pub(in crate::netfilter) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [((4 + value.len()) as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[test]
fn acknowledgements_of_cookies_are_lost_to_rules_about_the_first_packet() {
    let input =
        |drops, rules: &[&[Vec<NftExpression>]]| chain("INPUT", Some((Hook::Input, ChainType::Filter, drops)), rules);
    let loses = |chain, picks_up| {
        let rules = Arc::new(Ruleset::new(vec![chain], Vec::new(), false));
        let firewall = Firewall { rules, ..Firewall::default() };
        firewall.loses_cookies(SocketAddr::from((ENDPOINT, 443)), picks_up).map(|why| why.to_string())
    };
    let drops = |state| input(false, &[&[in_state(state), does(RuleVerdict::Drop)]]);
    const INVALID: u32 = 1;
    let why = loses(drops(INVALID), false).unwrap();
    assert_eq!(why, "rule 1 of chain INPUT in table ip t may drop packets");
    assert_eq!((loses(drops(INVALID), true), loses(drops(ESTABLISHED), false)), (None, None));
    // `tcp flags syn / syn` is what a first packet has.
    let no_syn = [in_state(NEW), is(RegisterSource::Transport(13), &[16]), does(RuleVerdict::Drop)];
    assert_eq!(loses(input(false, &[&no_syn]), true), None, "other bits of the flags are not known");
    let open =
        input(true, &[&[in_state(ESTABLISHED), does(RuleVerdict::Accept)], &[to_port(443), does(RuleVerdict::Accept)]]);
    assert_eq!(loses(open.clone(), false), None);
    let closed = input(true, &[&[in_state(ESTABLISHED), does(RuleVerdict::Accept)]]);
    assert!(loses(closed, true).is_some());
}

#[test]
fn a_rule_for_the_endpoint_counts_and_one_for_another_does_not() {
    let drop = |address| output(&[&[to(OTHER), does(RuleVerdict::Drop)], &[to(address), does(RuleVerdict::Drop)]]);
    let why = concerns(vec![drop(ENDPOINT)]).unwrap();
    assert_eq!(why, "rule 2 of chain OUTPUT in table ip t may drop packets to it");
    assert_eq!(concerns(vec![drop(OTHER)]), None);
    let port = |port| output(&[&[to_port(port), does(RuleVerdict::Drop)]]);
    assert!(concerns(vec![port(9000)]).is_some());
    assert_eq!(concerns(vec![port(9001)]), None);
    let by = |name: &str| output(&[&[leaves_by(name), does(RuleVerdict::Drop)]]);
    assert!(concerns(vec![by("back\0")]).is_some());
    assert!(concerns(vec![by("ba")]).is_some(), "ba*");
    assert_eq!(concerns(vec![by("front\0")]), None);
    // For one source port.
    let source_port = output(&[&[is(RegisterSource::Transport(0), &[40, 0]), does(RuleVerdict::Drop)]]);
    assert!(concerns(vec![source_port]).is_some());
}

#[test]
fn what_cannot_be_decided_counts_unless_it_only_accepts() {
    assert!(concerns(vec![output(&[&[perhaps(), does(RuleVerdict::Drop)]])]).is_some());
    assert_eq!(concerns(vec![output(&[&[perhaps(), does(RuleVerdict::Accept)]])]), None);
    let after = |first: Vec<NftExpression>| output(&[&[first, does(RuleVerdict::Accept)], &[does(RuleVerdict::Drop)]]);
    assert!(concerns(vec![after(perhaps())]).is_some(), "it may not be accepted");
    assert_eq!(concerns(vec![after(to(ENDPOINT))]), None, "nothing comes to the second rule");
}

#[test]
fn a_policy_counts_if_it_can_be_reached() {
    let dropping =
        |rules: &[&[Vec<NftExpression>]]| chain("OUTPUT", Some((Hook::Output, ChainType::Filter, true)), rules);
    let why = concerns(vec![dropping(&[&[to(OTHER), does(RuleVerdict::Accept)]])]).unwrap();
    assert_eq!(why, "the policy of chain OUTPUT in table ip t may drop packets to it");
    assert_eq!(concerns(vec![dropping(&[&[to(ENDPOINT), does(RuleVerdict::Accept)]])]), None);
    assert!(
        concerns(vec![dropping(&[&[perhaps(), does(RuleVerdict::Return)], &[does(RuleVerdict::Accept)]])]).is_some()
    );
}

#[test]
fn answers_of_the_endpoint_are_judged_as_established() {
    let input = |rules: &[&[Vec<NftExpression>]]| chain("INPUT", Some((Hook::Input, ChainType::Filter, true)), rules);
    let why = concerns(vec![input(&[])]).unwrap();
    assert_eq!(why, "the policy of chain INPUT in table ip t may drop packets from it");
    assert_eq!(concerns(vec![input(&[&[in_state(ESTABLISHED), does(RuleVerdict::Accept)]])]), None);
    assert!(concerns(vec![input(&[&[in_state(NEW), does(RuleVerdict::Accept)]])]).is_some());
    let prerouting = |rules: &[&[Vec<NftExpression>]]| {
        chain("PREROUTING", Some((Hook::Prerouting, ChainType::Filter, false)), rules)
    };
    assert!(concerns(vec![prerouting(&[&[from(ENDPOINT), does(RuleVerdict::Drop)]])]).is_some());
    assert_eq!(concerns(vec![prerouting(&[&[to(ENDPOINT), does(RuleVerdict::Drop)]])]), None);
}

#[test]
fn translation_sees_the_first_packet_of_a_dial_alone() {
    let nat = |hook, rules: &[&[Vec<NftExpression>]]| chain("c", Some((hook, ChainType::Nat, false)), rules);
    assert!(concerns(vec![nat(Hook::Postrouting, &[&[translates()]])]).unwrap().contains("translate"));
    assert!(concerns(vec![nat(Hook::Output, &[&[to(ENDPOINT), translates()]])]).is_some());
    assert_eq!(concerns(vec![nat(Hook::Output, &[&[to(OTHER), translates()]])]), None);
    assert_eq!(concerns(vec![nat(Hook::Prerouting, &[&[translates()]])]), None, "answers are none");
}

#[test]
fn marks_are_followed_through_chains() {
    // As kube-proxy does it: packets are marked in one chain, and translated in another.
    let chains = |first: Vec<NftExpression>| {
        let nat = |name, hook, rules: &[&[Vec<NftExpression>]]| chain(name, Some((hook, ChainType::Nat, false)), rules);
        vec![
            nat("OUTPUT", Hook::Output, &[&[first, does(RuleVerdict::Jump(2))]]),
            nat("POSTROUTING", Hook::Postrouting, &[&[marked(0x4000), translates()]]),
            chain("MARK-MASQ", None, &[&[vec![NftExpression::Mark(Some((0x4000, 0x4000)))]]]),
        ]
    };
    assert_eq!(concerns(chains(to(OTHER))), None);
    assert_eq!(
        concerns(chains(to(ENDPOINT))).unwrap(),
        "rule 1 of chain POSTROUTING in table ip t may translate addresses or ports of packets to it"
    );
    assert!(concerns(chains(perhaps())).is_some());
}

#[test]
fn chains_return_and_go_where_the_kernel_has_them_go() {
    let chains = |verdict: RuleVerdict, inner: Vec<NftExpression>| {
        vec![
            output(&[&[does(verdict)], &[does(RuleVerdict::Drop)]]),
            chain("inner", None, &[&[to(ENDPOINT), inner], &[does(RuleVerdict::Return)]]),
        ]
    };
    assert_eq!(concerns(chains(RuleVerdict::Jump(1), does(RuleVerdict::Accept))), None);
    assert!(concerns(chains(RuleVerdict::Jump(1), does(RuleVerdict::Return))).is_some());
    assert_eq!(concerns(chains(RuleVerdict::Goto(1), does(RuleVerdict::Return))), None, "to the policy");
    let why = concerns(chains(RuleVerdict::Goto(1), does(RuleVerdict::Drop))).unwrap();
    assert_eq!(why, "rule 1 of chain inner in table ip t may drop packets (OUTPUT) to it");
}

#[test]
fn chains_without_end_are_given_up() {
    let round = vec![output(&[&[perhaps(), does(RuleVerdict::Jump(0))], &[perhaps(), does(RuleVerdict::Drop)]])];
    assert!(concerns(round).unwrap().contains("too long"));
}

#[test]
fn a_listener_reports_rules_that_divert_its_clients() {
    let diverts = |chains: Vec<Chain>| {
        let listener = SocketAddr::from(([10, 99, 0, 1], 8443));
        judge_listener(&Ruleset::new(chains, Vec::new(), false), listener).err().map(|harm| harm.to_string())
    };
    let nat =
        |rules: &[&[Vec<NftExpression>]]| chain("PREROUTING", Some((Hook::Prerouting, ChainType::Nat, false)), rules);
    let why = diverts(vec![nat(&[&[to_port(8443), translates()]])]).unwrap();
    assert_eq!(why, "rule 1 of chain PREROUTING in table ip t may translate addresses or ports of packets to it");
    assert_eq!(diverts(vec![nat(&[&[to_port(443), translates()]])]), None);
    assert!(diverts(vec![nat(&[&[from([192, 0, 2, 1]), translates()]])]).is_some(), "of some clients");
    // A client whose packets a filter drops has no connection that could be steered.
    let filter = chain("INPUT", Some((Hook::Input, ChainType::Filter, true)), &[&[perhaps(), does(RuleVerdict::Drop)]]);
    assert_eq!(diverts(vec![filter]), None);
}

/// The outcome for a client's connection to a listener, or for one to an endpoint.
fn outcome(chains: Vec<Chain>, accepted: bool, port: u16) -> String {
    let (ours, theirs) = if accepted { ([10, 99, 0, 1], [10, 99, 0, 7]) } else { ([10, 99, 1, 1], ENDPOINT) };
    let (ours_port, theirs_port) = if accepted { (8443, port) } else { (port, 9000) };
    let leg = Leg { ours: (ours, ours_port).into(), theirs: (theirs, theirs_port).into(), interface: 7, accepted };
    match judge_leg(&Ruleset::new(chains, Vec::new(), false), leg, Interface::new(7, "some"), AddressClass::Elsewhere) {
        LegOutcome::Passes => "passes".to_owned(),
        LegOutcome::DependsOnPort => "depends".to_owned(),
        LegOutcome::Lost { incoming, loss: Loss { rejected, .. } } => {
            format!(
                "{} {}",
                if incoming { "incoming" } else { "outgoing" },
                if rejected { "rejected" } else { "dropped" }
            )
        }
    }
}

const CLIENT: [u8; 4] = [10, 99, 0, 7];

fn base(name: &str, hook: Hook, drops: bool, rules: &[&[Vec<NftExpression>]]) -> Chain {
    chain(name, Some((hook, ChainType::Filter, drops)), rules)
}

#[test]
fn a_connection_ends_when_its_packets_certainly_do_not_pass() {
    let input = |rules: &[&[Vec<NftExpression>]]| base("INPUT", Hook::Input, false, rules);
    let drops = does(RuleVerdict::Drop);
    let rejects = vec![NftExpression::Effect(Effect::Reject)];
    assert_eq!(outcome(vec![input(&[&[from(CLIENT), drops.clone()]])], true, 0), "incoming dropped");
    assert_eq!(outcome(vec![input(&[&[from(CLIENT), rejects.clone()]])], true, 0), "incoming rejected");
    assert_eq!(outcome(vec![input(&[&[from(OTHER), drops.clone()]])], true, 0), "passes");
    assert_eq!(outcome(vec![output(&[&[to(CLIENT), drops.clone()]])], true, 0), "outgoing dropped");
    assert_eq!(outcome(vec![output(&[&[to(ENDPOINT), rejects]])], false, 0), "outgoing rejected");
    assert_eq!(outcome(vec![input(&[&[from(ENDPOINT), drops.clone()]])], false, 0), "incoming dropped");
    let prerouting = base("PREROUTING", Hook::Prerouting, false, &[&[from(CLIENT), drops.clone()]]);
    assert_eq!(outcome(vec![prerouting], true, 0), "incoming dropped");
    let ingress = base("ingress", Hook::Ingress, false, &[&[from(CLIENT), drops]]);
    assert_eq!(outcome(vec![ingress], true, 0), "incoming dropped");
    assert_eq!(outcome(vec![base("INPUT", Hook::Input, true, &[])], true, 0), "incoming dropped");
}

#[test]
fn a_connection_goes_on_when_something_may_let_its_packets_pass() {
    let drops = does(RuleVerdict::Drop);
    let input =
        |first: &[Vec<NftExpression>]| base("INPUT", Hook::Input, true, &[first, &[from(CLIENT), drops.clone()]]);
    assert_eq!(outcome(vec![input(&[in_state(ESTABLISHED), does(RuleVerdict::Accept)])], true, 0), "passes");
    assert_eq!(outcome(vec![input(&[in_state(NEW), does(RuleVerdict::Accept)])], true, 0), "incoming dropped");
    assert_eq!(outcome(vec![input(&[perhaps(), does(RuleVerdict::Accept)])], true, 40_000), "passes");
    let limited = base("INPUT", Hook::Input, false, &[&[perhaps(), drops.clone()]]);
    assert_eq!(outcome(vec![limited], true, 40_000), "passes");
    // Both ways drop it.
    let twice = base("INPUT", Hook::Input, false, &[&[perhaps(), drops.clone()], std::slice::from_ref(&drops)]);
    assert_eq!(outcome(vec![twice], true, 40_000), "incoming dropped");
    // It may have been diverted before.
    let diverted = vec![NftExpression::Effect(Effect::Unknown("novel".into()))];
    let after = base("INPUT", Hook::Input, false, &[&[diverted], &[drops]]);
    assert_eq!(outcome(vec![after], true, 40_000), "passes");
}

#[test]
fn a_port_that_is_not_known_leaves_it_open() {
    let source_port = |port: u16| is(RegisterSource::Transport(0), &port.to_be_bytes());
    let chains = |port| vec![base("INPUT", Hook::Input, false, &[&[source_port(port), does(RuleVerdict::Drop)]])];
    assert_eq!(outcome(chains(40_000), true, 0), "depends");
    assert_eq!(outcome(chains(40_000), true, 40_000), "incoming dropped");
    assert_eq!(outcome(chains(40_000), true, 40_001), "passes");
    assert_eq!(outcome(chains(9000), false, 0), "incoming dropped", "the endpoint's");
}

#[test]
fn of_many_rules_few_are_looked_at() {
    let services = |count: u32| -> Vec<Chain> {
        let rules: Vec<Vec<NftExpression>> = (0..count)
            .map(|number| [to((0x0b00_0000 + number).to_be_bytes()), to_port(80), does(RuleVerdict::Jump(1))].concat())
            .collect();
        let rules = rules.into_iter().enumerate();
        let rules = rules.map(|(at, expressions)| NftRule { handle: at as u64, expressions }).collect();
        let marks = chain("MARK", None, &[&[vec![NftExpression::Mark(Some((1, 1)))], does(RuleVerdict::Drop)]]);
        vec![Chain { rules, ..base("OUTPUT", Hook::Output, false, &[]) }, marks]
    };
    // More rules than are evaluated for one packet.
    let rules = Ruleset::new(services(300_000), Vec::new(), false);
    let dial = KernelDial { source: [10, 99, 1, 1].into(), to: (ENDPOINT, 80).into(), link: Interface::new(7, "back") };
    assert_eq!(judge_dial(&rules, dial, AddressClass::Elsewhere), Ok(()));
    let service = KernelDial { to: ([11, 0, 0, 77], 80).into(), ..dial };
    assert!(judge_dial(&rules, service, AddressClass::Elsewhere).is_err());
}
