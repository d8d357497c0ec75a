//! Client addresses: passed to the backend by the PROXY protocol, and checked against an allow-list.

use std::io::{ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use anyhow::{Result, bail, ensure};
use socket2::{Domain, Socket, Type};
use tests::hello::{client_hello, short_hello};
use tests::sluice::DataPath;
use tests::steering::{FRONT, Family, HOST, Setup, Stage};
use tests::stream::{self, Pair};
use tests::wait::PATIENCE;

on_both_data_paths! {
    the_proxy_header_comes_first,
    the_proxy_header_comes_first_over_ipv6,
    who_is_not_listed_is_refused,
    who_is_not_listed_is_refused_over_ipv6,
}

const PROXY_PROTOCOL: &str = "router.sluice.dev/proxy-protocol: v2";

fn the_proxy_header_comes_first(data_path: DataPath) -> Result<()> {
    proxy_header(data_path, Family::V4)
}

fn the_proxy_header_comes_first_over_ipv6(data_path: DataPath) -> Result<()> {
    proxy_header(data_path, Family::V6)
}

fn proxy_header(data_path: DataPath, family: Family) -> Result<()> {
    for offloads in [true, false] {
        let setup = Setup { annotations: PROXY_PROTOCOL, offloads, ..Setup::new(family) };
        let stage = Stage::new(data_path, setup)?;
        for cut in [0, 1, 100, 700] {
            for hello in [short_hello(HOST)?, client_hello(HOST)?] {
                let (first, second) = hello.split_at(cut.min(hello.len()));
                let mut client = stream::open(&stage.client, stage.address)?;
                client.write_all(first)?;
                client.write_all(second)?;
                let expected = [header(client.local_addr()?, stage.address)?, hello.clone()].concat();
                let origin = stream::accept_with(&stage.listener, &expected)?;
                let pair = Pair { client, origin };
                stage.check(&pair)?;
                pair.exchange(cut as u64, 300_000, 300_000)?;
            }
        }
        stage.all_ended()?;
    }
    Ok(())
}

/// The PROXY protocol's binary header (version 2, §2.2) for a TCP connection.
fn header(client: SocketAddr, listener: SocketAddr) -> Result<Vec<u8>> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    // Version 2, command PROXY.
    header.push(0x21);
    match (client.ip(), listener.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            header.extend([0x11, 0, 12]);
            header.extend(from.octets());
            header.extend(to.octets());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            header.extend([0x21, 0, 36]);
            header.extend(from.octets());
            header.extend(to.octets());
        }
        (from, to) => bail!("{from} and {to} are of two families"),
    }
    header.extend(client.port().to_be_bytes());
    header.extend(listener.port().to_be_bytes());
    Ok(header)
}

fn who_is_not_listed_is_refused(data_path: DataPath) -> Result<()> {
    allow_list(data_path, Family::V4, "haproxy.router.openshift.io/ip_allowlist: \"10.81.1.2 192.0.2.0/24\"")
}

fn who_is_not_listed_is_refused_over_ipv6(data_path: DataPath) -> Result<()> {
    allow_list(data_path, Family::V6, "haproxy.router.openshift.io/ip_allowlist: \"fd81:1::2 2001:db8::/32\"")
}

/// The client's machine has two addresses, one of which is in the allow-list.
fn allow_list(data_path: DataPath, family: Family, annotations: &'static str) -> Result<()> {
    let stage = Stage::new(data_path, Setup { annotations, ..Setup::new(family) })?;
    for _ in 0..10 {
        let hello = client_hello(HOST)?;
        let mut listed = connect_from(&stage, family.address(FRONT, 2))?;
        listed.write_all(&hello)?;
        let pair = Pair { client: listed, origin: stream::accept_with(&stage.listener, &hello)? };
        stage.check(&pair)?;
        pair.exchange(1, 10_000, 10_000)?;

        let mut other = connect_from(&stage, family.address(FRONT, 3))?;
        other.write_all(&hello)?;
        match stream::read_once(&mut other) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => (),
            Ok(0) if !stage.steers() => (),
            got => bail!("a client that is not listed got {got:?}"),
        }
    }
    stage.listener.set_nonblocking(true)?;
    let nobody = stage.listener.accept();
    ensure!(nobody.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "one that is not listed got through");
    Ok(())
}

fn connect_from(stage: &Stage, from: IpAddr) -> Result<TcpStream> {
    stage.client.run(|| {
        let socket = Socket::new(Domain::for_address(stage.address), Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
        socket.connect_timeout(&stage.address.into(), PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_tcp_nodelay(true)?;
        Ok(socket.into())
    })
}
