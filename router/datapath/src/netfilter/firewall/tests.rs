//! Verdicts on connections under rules of nftables and `iptables`, by kind of match.

use super::*;
use crate::netfilter::index::Index;
use crate::netfilter::rule::{Comparison, Effect, Expression, Rule, Source, Span};
use crate::netfilter::rules::{Base, Chain, Family, Hook, Kind};
use crate::netfilter::verdict::Verdict;

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
fn is(source: Source, bytes: &[u8]) -> Vec<Expression> {
    let span = Span { at: REGISTER, len: bytes.len() };
    vec![Expression::Load(source, span), Expression::Compare(span, Comparison::Equal, bytes.into())]
}

fn to(address: [u8; 4]) -> Vec<Expression> {
    is(Source::Network(16), &address)
}

fn from(address: [u8; 4]) -> Vec<Expression> {
    is(Source::Network(12), &address)
}

fn to_port(port: u16) -> Vec<Expression> {
    is(Source::Transport(2), &port.to_be_bytes())
}

fn marked(mark: u32) -> Vec<Expression> {
    is(Source::Meta(3), &mark.to_ne_bytes())
}

fn in_state(state: u32) -> Vec<Expression> {
    is(Source::Ct(0), &state.to_ne_bytes())
}

fn leaves_by(name: &str) -> Vec<Expression> {
    is(Source::Meta(7), name.as_bytes())
}

fn does(verdict: Verdict) -> Vec<Expression> {
    vec![Expression::Verdict(verdict)]
}

fn translates() -> Vec<Expression> {
    vec![Expression::Effect(Effect::Translate)]
}

fn perhaps() -> Vec<Expression> {
    vec![Expression::Perhaps(false)]
}

/// A chain with rules whose handles count from 1.
fn chain(name: &str, hook: Option<(Hook, Kind, bool)>, rules: &[&[Vec<Expression>]]) -> Chain {
    let rules = rules.iter().enumerate();
    let rules = rules.map(|(at, rule)| Rule { handle: at as u64 + 1, expressions: rule.concat() }).collect();
    let base = hook.map(|(hook, kind, drops)| Base { hook, priority: 0, kind, drops, devices: Vec::new() });
    Chain {
        family: Family::Ip,
        table: "t".into(),
        name: name.into(),
        base,
        rules,
        index: Index::default(),
        inert: false,
        plain: false,
    }
}

fn output(rules: &[&[Vec<Expression>]]) -> Chain {
    chain("OUTPUT", Some((Hook::Output, Kind::Filter, false)), rules)
}

fn concerns(chains: Vec<Chain>) -> Option<String> {
    let link = Link::new(7, "back");
    let dial = Dial { source: [10, 99, 1, 1].into(), to: SocketAddr::from(([10, 99, 1, 2], 9000)), link };
    judge_dial(&Ruleset::new(chains, Vec::new(), false), dial, Class::Elsewhere).err().map(|harm| harm.to_string())
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
fn a_rule_for_the_endpoint_counts_and_one_for_another_does_not() {
    let drop = |address| output(&[&[to(OTHER), does(Verdict::Drop)], &[to(address), does(Verdict::Drop)]]);
    let why = concerns(vec![drop(ENDPOINT)]).unwrap();
    assert_eq!(why, "rule 2 of chain OUTPUT in table ip t may drop packets to it");
    assert_eq!(concerns(vec![drop(OTHER)]), None);
    let port = |port| output(&[&[to_port(port), does(Verdict::Drop)]]);
    assert!(concerns(vec![port(9000)]).is_some());
    assert_eq!(concerns(vec![port(9001)]), None);
    let by = |name: &str| output(&[&[leaves_by(name), does(Verdict::Drop)]]);
    assert!(concerns(vec![by("back\0")]).is_some());
    assert!(concerns(vec![by("ba")]).is_some(), "ba*");
    assert_eq!(concerns(vec![by("front\0")]), None);
    // For one source port.
    let source_port = output(&[&[is(Source::Transport(0), &[40, 0]), does(Verdict::Drop)]]);
    assert!(concerns(vec![source_port]).is_some());
}

#[test]
fn what_cannot_be_decided_counts_unless_it_only_accepts() {
    assert!(concerns(vec![output(&[&[perhaps(), does(Verdict::Drop)]])]).is_some());
    assert_eq!(concerns(vec![output(&[&[perhaps(), does(Verdict::Accept)]])]), None);
    let after = |first: Vec<Expression>| output(&[&[first, does(Verdict::Accept)], &[does(Verdict::Drop)]]);
    assert!(concerns(vec![after(perhaps())]).is_some(), "it may not be accepted");
    assert_eq!(concerns(vec![after(to(ENDPOINT))]), None, "nothing comes to the second rule");
}

#[test]
fn a_policy_counts_if_it_can_be_reached() {
    let dropping = |rules: &[&[Vec<Expression>]]| chain("OUTPUT", Some((Hook::Output, Kind::Filter, true)), rules);
    let why = concerns(vec![dropping(&[&[to(OTHER), does(Verdict::Accept)]])]).unwrap();
    assert_eq!(why, "the policy of chain OUTPUT in table ip t may drop packets to it");
    assert_eq!(concerns(vec![dropping(&[&[to(ENDPOINT), does(Verdict::Accept)]])]), None);
    assert!(concerns(vec![dropping(&[&[perhaps(), does(Verdict::Return)], &[does(Verdict::Accept)]])]).is_some());
}

#[test]
fn answers_of_the_endpoint_are_judged_as_established() {
    let input = |rules: &[&[Vec<Expression>]]| chain("INPUT", Some((Hook::Input, Kind::Filter, true)), rules);
    let why = concerns(vec![input(&[])]).unwrap();
    assert_eq!(why, "the policy of chain INPUT in table ip t may drop packets from it");
    assert_eq!(concerns(vec![input(&[&[in_state(ESTABLISHED), does(Verdict::Accept)]])]), None);
    assert!(concerns(vec![input(&[&[in_state(NEW), does(Verdict::Accept)]])]).is_some());
    let prerouting =
        |rules: &[&[Vec<Expression>]]| chain("PREROUTING", Some((Hook::Prerouting, Kind::Filter, false)), rules);
    assert!(concerns(vec![prerouting(&[&[from(ENDPOINT), does(Verdict::Drop)]])]).is_some());
    assert_eq!(concerns(vec![prerouting(&[&[to(ENDPOINT), does(Verdict::Drop)]])]), None);
}

#[test]
fn translation_sees_the_first_packet_of_a_dial_alone() {
    let nat = |hook, rules: &[&[Vec<Expression>]]| chain("c", Some((hook, Kind::Nat, false)), rules);
    assert!(concerns(vec![nat(Hook::Postrouting, &[&[translates()]])]).unwrap().contains("translate"));
    assert!(concerns(vec![nat(Hook::Output, &[&[to(ENDPOINT), translates()]])]).is_some());
    assert_eq!(concerns(vec![nat(Hook::Output, &[&[to(OTHER), translates()]])]), None);
    assert_eq!(concerns(vec![nat(Hook::Prerouting, &[&[translates()]])]), None, "answers are none");
}

#[test]
fn marks_are_followed_through_chains() {
    // As kube-proxy does it: packets are marked in one chain, and translated in another.
    let chains = |first: Vec<Expression>| {
        let nat = |name, hook, rules: &[&[Vec<Expression>]]| chain(name, Some((hook, Kind::Nat, false)), rules);
        vec![
            nat("OUTPUT", Hook::Output, &[&[first, does(Verdict::Jump(2))]]),
            nat("POSTROUTING", Hook::Postrouting, &[&[marked(0x4000), translates()]]),
            chain("MARK-MASQ", None, &[&[vec![Expression::Mark(Some((0x4000, 0x4000)))]]]),
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
    let chains = |verdict: Verdict, inner: Vec<Expression>| {
        vec![
            output(&[&[does(verdict)], &[does(Verdict::Drop)]]),
            chain("inner", None, &[&[to(ENDPOINT), inner], &[does(Verdict::Return)]]),
        ]
    };
    assert_eq!(concerns(chains(Verdict::Jump(1), does(Verdict::Accept))), None);
    assert!(concerns(chains(Verdict::Jump(1), does(Verdict::Return))).is_some());
    assert_eq!(concerns(chains(Verdict::Goto(1), does(Verdict::Return))), None, "to the policy");
    let why = concerns(chains(Verdict::Goto(1), does(Verdict::Drop))).unwrap();
    assert_eq!(why, "rule 1 of chain inner in table ip t may drop packets (OUTPUT) to it");
}

#[test]
fn chains_without_end_are_given_up() {
    let round = vec![output(&[&[perhaps(), does(Verdict::Jump(0))], &[perhaps(), does(Verdict::Drop)]])];
    assert!(concerns(round).unwrap().contains("too long"));
}

#[test]
fn a_listener_is_asked_who_diverts_its_clients() {
    let diverts = |chains: Vec<Chain>| {
        let listener = SocketAddr::from(([10, 99, 0, 1], 8443));
        judge_listener(&Ruleset::new(chains, Vec::new(), false), listener).err().map(|harm| harm.to_string())
    };
    let nat = |rules: &[&[Vec<Expression>]]| chain("PREROUTING", Some((Hook::Prerouting, Kind::Nat, false)), rules);
    let why = diverts(vec![nat(&[&[to_port(8443), translates()]])]).unwrap();
    assert_eq!(why, "rule 1 of chain PREROUTING in table ip t may translate addresses or ports of packets to it");
    assert_eq!(diverts(vec![nat(&[&[to_port(443), translates()]])]), None);
    assert!(diverts(vec![nat(&[&[from([192, 0, 2, 1]), translates()]])]).is_some(), "of some clients");
    // A client whose packets a filter drops has no connection that could be steered.
    let filter = chain("INPUT", Some((Hook::Input, Kind::Filter, true)), &[&[perhaps(), does(Verdict::Drop)]]);
    assert_eq!(diverts(vec![filter]), None);
}

/// The outcome for a client's connection to a listener, or for one to an endpoint.
fn outcome(chains: Vec<Chain>, accepted: bool, port: u16) -> String {
    let (ours, theirs) = if accepted { ([10, 99, 0, 1], [10, 99, 0, 7]) } else { ([10, 99, 1, 1], ENDPOINT) };
    let (ours_port, theirs_port) = if accepted { (8443, port) } else { (port, 9000) };
    let leg = Leg { ours: (ours, ours_port).into(), theirs: (theirs, theirs_port).into(), interface: 7, accepted };
    match judge_leg(&Ruleset::new(chains, Vec::new(), false), leg, Link::new(7, "some"), Class::Elsewhere) {
        Outcome::Passes => "passes".to_owned(),
        Outcome::DependsOnPort => "depends".to_owned(),
        Outcome::Lost { incoming, loss: Loss { rejected, .. } } => {
            format!(
                "{} {}",
                if incoming { "incoming" } else { "outgoing" },
                if rejected { "rejected" } else { "dropped" }
            )
        }
    }
}

const CLIENT: [u8; 4] = [10, 99, 0, 7];

fn base(name: &str, hook: Hook, drops: bool, rules: &[&[Vec<Expression>]]) -> Chain {
    chain(name, Some((hook, Kind::Filter, drops)), rules)
}

#[test]
fn a_connection_ends_when_its_packets_certainly_do_not_pass() {
    let input = |rules: &[&[Vec<Expression>]]| base("INPUT", Hook::Input, false, rules);
    let drops = does(Verdict::Drop);
    let rejects = vec![Expression::Effect(Effect::Reject)];
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
    let drops = does(Verdict::Drop);
    let input = |first: &[Vec<Expression>]| base("INPUT", Hook::Input, true, &[first, &[from(CLIENT), drops.clone()]]);
    assert_eq!(outcome(vec![input(&[in_state(ESTABLISHED), does(Verdict::Accept)])], true, 0), "passes");
    assert_eq!(outcome(vec![input(&[in_state(NEW), does(Verdict::Accept)])], true, 0), "incoming dropped");
    assert_eq!(outcome(vec![input(&[perhaps(), does(Verdict::Accept)])], true, 40_000), "passes");
    let limited = base("INPUT", Hook::Input, false, &[&[perhaps(), drops.clone()]]);
    assert_eq!(outcome(vec![limited], true, 40_000), "passes");
    // Both ways drop it.
    let twice = base("INPUT", Hook::Input, false, &[&[perhaps(), drops.clone()], std::slice::from_ref(&drops)]);
    assert_eq!(outcome(vec![twice], true, 40_000), "incoming dropped");
    // It may have been diverted before.
    let diverted = vec![Expression::Effect(Effect::Unknown("novel".into()))];
    let after = base("INPUT", Hook::Input, false, &[&[diverted], &[drops]]);
    assert_eq!(outcome(vec![after], true, 40_000), "passes");
}

#[test]
fn a_port_that_is_not_known_leaves_it_open() {
    let source_port = |port: u16| is(Source::Transport(0), &port.to_be_bytes());
    let chains = |port| vec![base("INPUT", Hook::Input, false, &[&[source_port(port), does(Verdict::Drop)]])];
    assert_eq!(outcome(chains(40_000), true, 0), "depends");
    assert_eq!(outcome(chains(40_000), true, 40_000), "incoming dropped");
    assert_eq!(outcome(chains(40_000), true, 40_001), "passes");
    assert_eq!(outcome(chains(9000), false, 0), "incoming dropped", "the endpoint's");
}

#[test]
fn of_many_rules_few_are_looked_at() {
    let services = |count: u32| -> Vec<Chain> {
        let rules: Vec<Vec<Expression>> = (0..count)
            .map(|number| [to((0x0b00_0000 + number).to_be_bytes()), to_port(80), does(Verdict::Jump(1))].concat())
            .collect();
        let rules = rules.into_iter().enumerate();
        let rules = rules.map(|(at, expressions)| Rule { handle: at as u64, expressions }).collect();
        let marks = chain("MARK", None, &[&[vec![Expression::Mark(Some((1, 1)))], does(Verdict::Drop)]]);
        vec![Chain { rules, ..base("OUTPUT", Hook::Output, false, &[]) }, marks]
    };
    // More rules than are evaluated for one packet.
    let rules = Ruleset::new(services(300_000), Vec::new(), false);
    let dial = Dial { source: [10, 99, 1, 1].into(), to: (ENDPOINT, 80).into(), link: Link::new(7, "back") };
    assert_eq!(judge_dial(&rules, dial, Class::Elsewhere), Ok(()));
    let service = Dial { to: ([11, 0, 0, 77], 80).into(), ..dial };
    assert!(judge_dial(&rules, service, Class::Elsewhere).is_err());
}
