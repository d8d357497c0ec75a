//! The route of a name, for every combination of map entries.

use super::*;
use crate::http::UpgradeProtocol;
use crate::maps::PROTOCOL_HTTP;
use crate::tls::AlpnSet;

/// Map entries for the exact name (index 0) and for the wildcard (1).
#[derive(Clone, Copy, Default)]
struct Maps {
    passthrough: [bool; 2],
    tcp: [Option<HostRef>; 2],
    tls: [Option<HostRef>; 2],
    http: [Option<HostRef>; 2],
    allowed: bool,
}

impl Tables for Maps {
    fn is_passthrough(&self, candidate: HostKeyKind) -> bool {
        self.passthrough[candidate as usize]
    }

    fn tcp_be(&self, candidate: HostKeyKind) -> Option<HostRef> {
        self.tcp[candidate as usize]
    }

    fn edge_reencrypt(&self, candidate: HostKeyKind) -> Option<HostRef> {
        self.tls[candidate as usize]
    }

    fn http_be(&self, candidate: HostKeyKind) -> Option<HostRef> {
        self.http[candidate as usize]
    }

    fn source_allowed(&self, _: u32) -> bool {
        self.allowed
    }
}

const NAMED: ClientHello = ClientHello { sni: Sni::Name, alpn: AlpnSet(0) };
const HEAD: RequestHead = RequestHead {
    method_start: 0,
    method_len: 3,
    target_start: 4,
    target_len: 1,
    form: TargetForm::Origin,
    host: HeadHost::Name,
    http11: true,
    len: 32,
    framing: Framing::Sized,
    length: 0,
    upgrade: UpgradeProtocol::No,
};

fn route(route: u32, reason: Reason, flags: u16) -> Option<HostRef> {
    Some(HostRef { route, reason: reason as u16, flags })
}

fn decision(reason: Reason, route: u32) -> ConnectionDecision {
    ConnectionDecision { reason, route }
}

#[test]
fn a_hello_without_a_name_goes_to_the_agent() {
    let maps = Maps { passthrough: [true; 2], tcp: [route(1, Reason::Passthrough, 0); 2], ..Maps::default() };
    let hello = |sni| tls(ClientHello { sni, ..NAMED }, &maps);
    assert_eq!(hello(Sni::None), decision(Reason::NoSni, 0));
    assert_eq!(hello(Sni::IpLiteral), decision(Reason::SniAddress, 0));
    assert_eq!(hello(Sni::None).verdict(), Verdict::Pass);
}

#[test]
fn the_exact_host_beats_the_wildcard_whatever_its_termination() {
    let passthrough = route(1, Reason::Passthrough, 0);
    let edge = route(2, Reason::TlsTerminate, 0);
    let both = [
        Maps { tls: [edge, None], passthrough: [false, true], tcp: [None, passthrough], ..Maps::default() },
        Maps { passthrough: [true, false], tcp: [passthrough, None], tls: [None, edge], ..Maps::default() },
    ];
    assert_eq!(tls(NAMED, &both[0]), decision(Reason::TlsTerminate, 2));
    assert_eq!(tls(NAMED, &both[1]), decision(Reason::Passthrough, 1));
    assert_eq!(tls(NAMED, &both[1]).verdict(), Verdict::Steer);
}

#[test]
fn the_wildcard_serves_when_no_exact_host_does() {
    let maps = Maps { passthrough: [false, true], tcp: [None, route(3, Reason::Passthrough, 0)], ..Maps::default() };
    assert_eq!(tls(NAMED, &maps), decision(Reason::Passthrough, 3));
    let maps = Maps { tls: [None, route(4, Reason::TlsTerminate, 0)], ..Maps::default() };
    assert_eq!(tls(NAMED, &maps), decision(Reason::TlsTerminate, 4));
    assert_eq!(tls(NAMED, &Maps::default()), decision(Reason::UnknownSni, 0));
}

#[test]
fn a_passthrough_host_without_backend_is_left_to_the_agent() {
    // Never the wildcard's backend: the exact host exists, but its other map entry is not written yet.
    let maps = Maps { passthrough: [true, true], tcp: [None, route(5, Reason::Passthrough, 0)], ..Maps::default() };
    assert_eq!(tls(NAMED, &maps), decision(Reason::UnknownSni, 0));
}

#[test]
fn an_allow_list_drops_tls_and_passes_clear_text() {
    let mut maps = Maps {
        passthrough: [true, false],
        tcp: [route(6, Reason::Passthrough, ROUTE_ALLOW_LIST), None],
        http: [route(7, Reason::Cleartext, ROUTE_ALLOW_LIST), None],
        ..Maps::default()
    };
    assert_eq!(tls(NAMED, &maps), decision(Reason::SourceNotAllowed, 6));
    assert_eq!(tls(NAMED, &maps).verdict(), Verdict::Drop);
    assert_eq!(http(HEAD, HEAD.len, &maps), decision(Reason::NeedsProxy, 7), "the 403 is the proxy's to write");
    maps.allowed = true;
    assert_eq!(tls(NAMED, &maps), decision(Reason::Passthrough, 6));
    assert_eq!(http(HEAD, HEAD.len, &maps), decision(Reason::Cleartext, 7));
}

#[test]
fn a_passthrough_route_with_limits_is_relayed_and_its_allow_list_still_holds() {
    let tcp = |flags| [route(4, Reason::NeedsRelay, flags), None];
    let maps = Maps { passthrough: [true, false], tcp: tcp(0), ..Maps::default() };
    assert_eq!(tls(NAMED, &maps), decision(Reason::NeedsRelay, 4));
    assert_eq!(tls(NAMED, &maps).verdict(), Verdict::Pass);
    let listed = Maps { tcp: tcp(ROUTE_ALLOW_LIST), ..maps };
    assert_eq!(tls(NAMED, &listed), decision(Reason::SourceNotAllowed, 4));
}

#[test]
fn clear_text_is_steered_only_to_a_route_that_needs_no_proxy() {
    let maps = |exact, wildcard| Maps { http: [exact, wildcard], ..Maps::default() };
    let plain = route(8, Reason::Cleartext, 0);
    let paths = route(9, Reason::NeedsProxy, 0);
    assert_eq!(http(HEAD, HEAD.len, &maps(plain, paths)), decision(Reason::Cleartext, 8));
    assert_eq!(http(HEAD, HEAD.len, &maps(plain, paths)).verdict(), Verdict::Steer);
    assert_eq!(http(HEAD, HEAD.len, &maps(paths, plain)), decision(Reason::NeedsProxy, 9));
    assert_eq!(http(HEAD, HEAD.len, &maps(None, plain)), decision(Reason::Cleartext, 8));
    assert_eq!(http(HEAD, HEAD.len, &maps(None, None)), decision(Reason::UnknownHost, 0));
}

#[test]
fn an_odd_request_goes_to_the_agent() {
    let maps = Maps { http: [route(8, Reason::Cleartext, 0); 2], ..Maps::default() };
    for form in [TargetForm::Absolute, TargetForm::Authority, TargetForm::Asterisk] {
        assert_eq!(http(RequestHead { form, ..HEAD }, HEAD.len, &maps), decision(Reason::TargetForm, 0), "{form:?}");
    }
    assert_eq!(http(RequestHead { host: HeadHost::None, ..HEAD }, HEAD.len, &maps), decision(Reason::NoHost, 0));
    assert_eq!(
        http(RequestHead { host: HeadHost::IpLiteral, ..HEAD }, HEAD.len, &maps),
        decision(Reason::HostAddress, 0)
    );
}

#[test]
fn what_follows_a_head_at_once_is_the_proxys_to_read() {
    let maps = Maps { http: [route(8, Reason::Cleartext, 0), None], ..Maps::default() };
    assert_eq!(http(HEAD, HEAD.len + 1, &maps), decision(Reason::MoreThanHead, 8));
    assert_eq!(Reason::MoreThanHead.verdict(), Verdict::Pass);
    for (framing, reason) in [(Framing::Chunked, Reason::Cleartext), (Framing::Unclear, Reason::UnclearContent)] {
        assert_eq!(http(RequestHead { framing, ..HEAD }, HEAD.len, &maps), decision(reason, 8), "{framing:?}");
    }
    assert_eq!(Reason::UnclearContent.verdict(), Verdict::Pass);
}

#[test]
fn what_is_no_first_flight_is_passed_up_by_its_listener() {
    for (protocol, malformed_reason, long) in
        [(PROTOCOL_TLS, Reason::BadHello, Reason::LargeHello), (PROTOCOL_HTTP, Reason::BadHead, Reason::LargeHead)]
    {
        assert_eq!(malformed(protocol), malformed_reason);
        assert_eq!(too_long(protocol), long);
        assert_eq!(malformed(protocol).verdict(), Verdict::Pass);
        assert_eq!(too_long(protocol).verdict(), Verdict::Pass);
    }
}
