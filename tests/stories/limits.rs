//! The limits of the kernel path in docs/datapath.md: its behaviour, compared with the relay's.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use router_common::verdict::DialCounter;
use socket2::{Domain, Socket, Type};
use tests::hello::short_hello;
use tests::raw::{self, End, Nature, Place};
use tests::sluice::DataPath;
use tests::steering::{BACK, BACKEND_PORT, Carrier, FRONT, Family, HOST, Setup, Stage, alike};
use tests::stream::{self, Pair};
use tests::wait::{PATIENCE, wait_until};

use crate::strangers::{ended_from, from_port};
use crate::ways_out::gets_nothing;

/// Another link between router and backend.
const SECOND: u8 = 3;
/// Time during which a forbidden event must not occur.
const SILENCE: Duration = Duration::from_millis(700);
const BOTH: [DataPath; 2] = [DataPath::Kernel, DataPath::UserSpace];

fn world(data_path: DataPath, family: Family) -> Result<Stage> {
    Stage::new(data_path, Setup::new(family))
}

/// Packets from the endpoint arrive on another interface than packets to it use. IPv6 has no such filter.
#[test]
fn answers_that_a_reverse_path_filter_drops_are_carried() -> Result<()> {
    for data_path in BOTH {
        let stage = world(data_path, Family::V4)?;
        let [own, other] = [1, 2].map(|host| Family::V4.network(SECOND, host));
        stage.router.link(("second", &[&own]), &stage.backend, ("eth1", &[&other]))?;
        let (to, via) = (Family::V4.alone(BACK, 1), Family::V4.address(SECOND, 1).to_string());
        stage.backend.ip(&["route", "add", &to, "via", &via, "dev", "eth1"])?;
        let filter = |value| {
            let set = |name| stage.router.set(&format!("ipv4/conf/{name}/rp_filter"), value);
            ["all", "second"].into_iter().try_for_each(set)
        };
        filter("0")?;
        if stage.steers() {
            wait_until("the second link is attached to", PATIENCE, || {
                let status = stage.sluice.get("status");
                status.is_ok_and(|status| status["dataPath"]["interfaces"].to_string().contains("second"))
            })?;
        }
        stage.talk(Carrier::Kernel).with_context(|| format!("{data_path:?}, without a filter"))?;
        filter("1")?;
        if stage.steers() {
            stage.talk(Carrier::Kernel)?;
            let findings = stage.sluice.get("status")?["findings"].to_string();
            ensure!(findings.contains("net.ipv4.conf.second.rp_filter=1"), "{findings}");
        } else {
            gets_nothing(&stage)?;
        }
    }
    Ok(())
}

/// If a rule matches some packets of a connection, the kernel path checks it only for the handshake and first flight.
#[test]
fn a_rule_for_some_packets_of_a_connection_sees_none_that_is_carried() -> Result<()> {
    let world = |data_path, family| Stage::new(data_path, Setup { offloads: false, ..Setup::new(family) });
    alike(world, |stage| {
        let rule = "table inet some { chain c { type filter hook input priority 0
            iifname front tcp dport 8443 meta length > 1000 counter drop\n}\n}\n";
        stage.router.feed(&["nft", "-f", "-"], rule)?;
        let Pair { mut client, mut origin } = stage.connect_in(&[&short_hello(HOST)?])?;
        client.write_all(&[7; 1200])?;
        let mut received = [0; 1200];
        if !stage.steers() {
            origin.set_read_timeout(Some(SILENCE))?;
            let come = origin.peek(&mut received);
            ensure!(come.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "{come:?} has come");
            stage.router.feed(&["nft", "-f", "-"], "delete table inet some")?;
            origin.set_read_timeout(Some(PATIENCE))?;
        }
        origin.read_exact(&mut received)?;
        ensure!(received == [7; 1200], "something else has come");
        Ok(())
    })
}

/// A socket's policy applies to the packets of that socket. The agent's sockets have no policy.
#[test]
fn an_ipsec_policy_of_a_single_socket_is_for_no_other() -> Result<()> {
    alike(world, |stage| {
        let endpoint = SocketAddr::new(stage.family.address(BACK, 2), BACKEND_PORT);
        let blocked = stage.router.run(|| {
            let socket = Socket::new(Domain::for_address(endpoint), Type::STREAM, None)?;
            block(&socket, stage.family)?;
            Ok(socket.connect_timeout(&endpoint.into(), SILENCE).is_err().then_some(socket))
        })?;
        ensure!(blocked.is_some(), "a socket that its own policy blocks has connected");
        stage.talk(Carrier::Kernel)
    })
}

/// Sets a policy of a socket that blocks outgoing packets: a `struct xfrm_userpolicy_info` (linux/xfrm.h).
fn block(socket: &Socket, family: Family) -> Result<()> {
    const FAMILY: usize = 40;
    const DIRECTION: usize = 160;
    const ACTION: usize = 161;
    let mut policy = [0_u8; 168];
    let (level, name, version) = match family {
        // IP_XFRM_POLICY, IPV6_XFRM_POLICY
        Family::V4 => (libc::IPPROTO_IP, 17, libc::AF_INET),
        Family::V6 => (libc::IPPROTO_IPV6, 35, libc::AF_INET6),
    };
    policy[FAMILY..FAMILY + 2].copy_from_slice(&u16::try_from(version)?.to_ne_bytes());
    // XFRM_POLICY_OUT, XFRM_POLICY_BLOCK
    (policy[DIRECTION], policy[ACTION]) = (1, 1);
    let length = libc::socklen_t::try_from(policy.len())?;
    // SAFETY: the value has that many bytes, and the kernel only reads them.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, policy.as_ptr().cast(), length) };
    ensure!(done == 0, "a socket gets no policy: {}", std::io::Error::last_os_error());
    Ok(())
}

/// A segment with an authentication header of an unknown key: both data paths drop it, and the connection continues.
#[test]
fn segments_behind_an_unknown_authentication_header_are_dropped() -> Result<()> {
    let world = |data_path, family| Stage::new(data_path, Setup { offloads: false, ..Setup::new(family) });
    alike(world, |stage| {
        stage.carried_by(Carrier::Kernel, || {
            let address = SocketAddr::new(raw::address_on(stage.family.address(FRONT, 2)), 20_001);
            let place = Place { at: (&stage.client, "eth0"), gateway: (&stage.router, "front"), address };
            let mut end = End::connect(&place, stage.address, Nature::COMMON)?;
            let hello = short_hello(HOST)?;
            end.send(&hello)?;
            let mut origin = stream::accept_with(&stage.listener, &hello)?;
            end.all_acknowledged()?;
            let text = b"authenticated";
            end.send_authenticated(text)?;
            origin.set_read_timeout(Some(SILENCE))?;
            let come = origin.peek(&mut [0; 16]);
            ensure!(come.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "{come:?} has come");
            origin.set_read_timeout(Some(PATIENCE))?;
            end.send(text)?;
            end.all_acknowledged()?;
            let mut received = vec![0; text.len()];
            origin.read_exact(&mut received)?;
            Ok(received)
        })
    })
}

/// A client begins to send authentication headers, and this host has the key, but no policy: the stack accepts the
/// packets, and does not know the connection. The agent carries new connections.
#[test]
#[ignore = "needs AH; run by `cargo xtask verify --kernels`"]
fn connections_whose_packets_begin_to_be_authenticated_wait() -> Result<()> {
    alike(world, |stage| {
        let Pair { mut client, mut origin } = stage.connect()?;
        let [from, to] = [client.local_addr()?, client.peer_addr()?].map(|end| end.ip().to_string());
        let ends = ["src", &from, "dst", &to];
        let key = ["proto", "ah", "spi", "0x1234", "mode", "transport", "auth", "hmac(sha256)", "0x0123456789abcdef"];
        for machine in [&stage.client, &stage.router] {
            machine.ip(&[&["xfrm", "state", "add"][..], &ends, &key].concat())?;
        }
        let protect = [&["xfrm", "policy", "add"][..], &ends, &["dir", "out", "tmpl"], &ends, &key[..2], &key[4..6]];
        stage.client.ip(&protect.concat())?;
        client.write_all(b"authenticated")?;
        let mut received = [0; 13];
        if stage.steers() {
            origin.set_read_timeout(Some(SILENCE))?;
            let come = origin.peek(&mut received);
            ensure!(come.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "{come:?} has come");
            origin.set_read_timeout(Some(PATIENCE))?;
        }
        let seen = stage.talk_from(&stage.client, stage.address, Carrier::AgentAlone)?;
        stage.client.ip(&["xfrm", "policy", "flush"])?;
        origin.read_exact(&mut received)?;
        ensure!(&received == b"authenticated", "{received:?} has come");
        Ok(seen)
    })
}

/// A dial does not detect sockets that are bound to another interface than its client's; the endpoint's response does.
#[test]
fn sockets_that_are_bound_to_another_interface_keep_their_connections() -> Result<()> {
    const PORTS: (u16, u16) = (20_000, 20_031);
    alike(
        |data_path, family| {
            let mut setup = Setup::new(family);
            setup.arguments = vec!["--snat-ports".to_owned(), format!("{}-{}", PORTS.0, PORTS.1)];
            Stage::new(data_path, setup)
        },
        |stage| {
            let [own, backend] =
                [(1, 0), (2, BACKEND_PORT)].map(|(host, port)| SocketAddr::new(stage.family.address(BACK, host), port));
            let open = |port| from_port(stage, &stage.router, Some("back"), SocketAddr::new(own.ip(), port), backend);
            let sockets = (PORTS.0..=PORTS.1).step_by(2).map(open).collect::<Result<Vec<_>>>()?;
            for _ in 0..2 * sockets.len() {
                stage.connect()?.greet()?;
            }
            let dead = sockets.iter().filter(|socket| !socket.lives()).count();
            ensure!(dead == 0, "{dead} of {} connections of the host died", sockets.len());
            let challenged = stage.dial_counter(DialCounter::Challenged)?;
            ensure!(!stage.steers() || challenged > 0, "no port of theirs was tried");
            Ok(())
        },
    )
}

/// With the agent, the stack refuses the port at once; with the programs, the SYN waits.
#[test]
fn a_program_that_binds_the_port_of_a_carried_connection_waits_for_its_end() -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = world(DataPath::Kernel, family)?;
        let backend = SocketAddr::new(family.address(BACK, 2), BACKEND_PORT);
        let carried = stage.connect()?;
        let own = carried.origin.peer_addr()?;
        let early = stage.router.run(|| {
            let socket = Socket::new(Domain::for_address(own), Type::STREAM, None)?;
            socket.bind(&own.into())?;
            Ok(socket.connect_timeout(&backend.into(), SILENCE))
        })?;
        ensure!(early.as_ref().is_err_and(|error| error.kind() == ErrorKind::TimedOut), "{early:?}");
        carried.greet()?;
        drop(carried);
        wait_until("the connection has ended", PATIENCE, || ended_from(&stage, own.port()).unwrap_or(false))?;
        let late = from_port(&stage, &stage.router, None, own, backend)?;
        ensure!(late.lives(), "the program's connection is dead");
    }
    Ok(())
}

/// Packets that an external balancer sends back to the router look like any client's; here the balancer does so only a
/// few times.
#[test]
fn a_route_to_the_router_by_a_balancer_elsewhere_goes_round() -> Result<()> {
    const ROUNDS: usize = 20;
    alike(world, |stage| {
        let (version, family) = (if stage.family == Family::V4 { "ip" } else { "ip6" }, stage.family);
        stage.backend.set(family.forwarding(), "1")?;
        let [router, balancer] = [1, 2].map(|host| family.address(BACK, host));
        let to = SocketAddr::new(router, stage.address.port());
        let rules = format!(
            "table {version} balancer {{
                chain few {{ type filter hook prerouting priority -150
                    tcp dport {BACKEND_PORT} ct state new limit rate over 1/day burst {ROUNDS} packets drop
                }}
                chain pre {{ type nat hook prerouting priority -100; tcp dport {BACKEND_PORT} dnat to {to}
                }}
                chain post {{ type nat hook postrouting priority 100; {version} daddr {router} snat to {balancer}
                }}
            }}"
        );
        stage.backend.feed(&["nft", "-f", "-"], &rules)?;
        let mut client = stream::open(&stage.client, stage.address)?;
        client.write_all(&short_hello(HOST)?)?;
        let read = client.read(&mut [0; 16]);
        ensure!(!matches!(read, Ok(length) if length > 0), "{read:?}");
        let any_port = SocketAddr::new(balancer, 0).to_string();
        let of_balancer = format!("client={}", any_port.trim_end_matches('0'));
        let lines = || stage.sluice.output().iter().filter(|line| line.contains(&of_balancer)).count();
        wait_until("the access log has each round", PATIENCE, || lines() >= ROUNDS)
            .map(drop)
            .with_context(|| format!("{:?}", stage.sluice.output()))
    })
}

/// Packets beyond 64 KiB have a jumbo payload option (RFC 2675) that no program can remove: they are dropped and
/// counted. The sender retransmits them as plain segments.
#[test]
fn packets_beyond_64_kib_arrive_in_smaller_ones() -> Result<()> {
    const LENGTH: u64 = 3_000_000;
    for data_path in BOTH {
        let stage = world(data_path, Family::V6)?;
        for (netns, interface) in
            [(&stage.client, "eth0"), (&stage.router, "front"), (&stage.router, "back"), (&stage.backend, "eth0")]
        {
            netns.ip(&["link", "set", interface, "gso_max_size", "196608", "gro_max_size", "196608"])?;
        }
        stage.connect()?.exchange(1, LENGTH, LENGTH)?;
        let refused = stage.dial_counter(DialCounter::RefusedHeaders)?;
        ensure!(!stage.steers() || refused > 0, "no packet was that long");
    }
    Ok(())
}
