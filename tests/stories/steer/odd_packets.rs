//! Packets of an established connection that become unusual: IP options, extension headers, fragments.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use router_common::verdict::DialCounter;
use tests::hello::short_hello;
use tests::sluice::DataPath;
use tests::socket_option::set_option;
use tests::steering::{Family, HOST, Setup, Stage};
use tests::stream::{self, Pair};
use tests::wait;
use tests::wire::{self, Wire, fragmenting};

use crate::ways_out::AGAIN_WITHIN;

on_both_data_paths! {
    options_that_begin_in_mid_connection,
    extension_headers_that_begin_in_mid_connection,
    packets_in_fragments,
    packets_in_fragments_over_ipv6,
    fragments_that_come_in_the_wrong_order,
    fragments_that_come_in_the_wrong_order_over_ipv6,
}

/// Bytes each way.
const LENGTH: u64 = 300_000;
/// Size of a fragment in bytes: hellos fit, segments with data do not.
const PART: u32 = 600;

/// A few bytes each way, many, of the endpoint so many, and the ends; with what either machine leaves to the other, and
/// without.
fn odd(data_path: DataPath, family: Family, down: u64, make_odd: impl Fn(&TcpStream) -> Result<()>) -> Result<()> {
    for offloads in [true, false] {
        let stage = Stage::new(data_path, Setup { offloads, ..Setup::new(family) })?;
        for (client_is, origin_is) in [(true, false), (false, true), (true, true)] {
            let told = || format!("the client {client_is}, the endpoint {origin_is}, offloads {offloads}");
            let pair = stage.connect()?;
            pair.greet()?;
            if client_is {
                make_odd(&pair.client)?;
            }
            if origin_is {
                make_odd(&pair.origin)?;
            }
            for _ in 0..100 {
                pair.greet().with_context(told)?;
            }
            pair.exchange(1, LENGTH, down).with_context(told)?;
        }
        stage.all_ended()?;
        ensure!(stage.dial_counter(DialCounter::RefusedHeaders)? == 0, "some were dropped");
    }
    Ok(())
}

fn options_that_begin_in_mid_connection(data_path: DataPath) -> Result<()> {
    odd(data_path, Family::V4, LENGTH, |stream| {
        set_option(stream, libc::IPPROTO_IP, libc::IP_OPTIONS, &[7, 7, 4, 0, 0, 0, 0, 0])
    })
}

fn extension_headers_that_begin_in_mid_connection(data_path: DataPath) -> Result<()> {
    // 16 bytes: an experimental option that is to be skipped (RFC 4727 §2.2), and padding.
    let options = [0, 1, 0x1e, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 0, 0];
    // Less than a segment: Linux does not include the headers in the segment size of an accepted connection, and never
    // sends full segments.
    odd(data_path, Family::V6, 1000, |stream| {
        set_option(stream, libc::IPPROTO_IPV6, libc::IPV6_HOPOPTS, &options)?;
        set_option(stream, libc::IPPROTO_IPV6, libc::IPV6_DSTOPTS, &options)
    })
}

fn packets_in_fragments(data_path: DataPath) -> Result<()> {
    in_fragments(data_path, Family::V4)
}

fn packets_in_fragments_over_ipv6(data_path: DataPath) -> Result<()> {
    in_fragments(data_path, Family::V6)
}

fn in_fragments(data_path: DataPath, family: Family) -> Result<()> {
    for (front, back) in [(true, false), (false, true), (true, true)] {
        let plan = |fragments: bool| Some(if fragments { fragmenting(PART, false) } else { wire::clean() });
        let stage = Stage::new(data_path, Setup { front: plan(front), back: plan(back), ..Setup::new(family) })?;
        for seed in 0..3 {
            let pair = stage.connect_in(&[&short_hello(HOST)?])?;
            pair.greet()?;
            pair.exchange(seed, LENGTH, LENGTH).with_context(|| format!("front {front}, back {back}"))?;
        }
        stage.carried(3)?;
        stage.all_ended()?;
        let given_up = stage.dial_counter(DialCounter::Fragmented)?;
        ensure!(given_up == 0, "{given_up} connections were given up");
        // Sent and carried in fragments.
        let parts = |wire: &Option<Wire>| wire.as_ref().map_or(0, Wire::faults);
        let parts = parts(&stage.wires.0) + parts(&stage.wires.1);
        ensure!(parts > 100, "only {parts} packets were in fragments");
    }
    Ok(())
}

fn fragments_that_come_in_the_wrong_order(data_path: DataPath) -> Result<()> {
    in_the_wrong_order(data_path, Family::V4)
}

fn fragments_that_come_in_the_wrong_order_over_ipv6(data_path: DataPath) -> Result<()> {
    in_the_wrong_order(data_path, Family::V6)
}

/// The last fragment comes first: its connection is unknown until the first fragment arrives. The relay's host
/// reassembles them. A connection in the kernel is reset at both ends, and the client's next ones are relayed.
fn in_the_wrong_order(data_path: DataPath, family: Family) -> Result<()> {
    let setup = Setup { front: Some(fragmenting(PART, true)), ..Setup::new(family) };
    let stage = Stage::new(data_path, setup)?;
    let hello = short_hello(HOST)?;
    let first = stage.connect_in(&[&hello])?;
    first.greet()?;
    if !stage.steers() {
        return first.exchange(1, LENGTH, LENGTH);
    }
    let Pair { mut client, mut origin } = first;
    client.write_all(&[7; 1000])?;
    let ended = |stream: &mut TcpStream| stream.read(&mut [0; 8]).map_err(|error| error.kind());
    ensure!(ended(&mut client) == Err(ErrorKind::ConnectionReset), "the client is told");
    ensure!(ended(&mut origin) == Err(ErrorKind::ConnectionReset), "the endpoint is told");
    ensure!(stage.dial_counter(DialCounter::Fragmented)? == 1, "counted");
    ensure!(stage.dial_counter(DialCounter::LostFragments)? > 0, "counted");
    wait::wait_until("the access log tells", wait::PATIENCE, || {
        stage.sluice.output().iter().any(|line| line.contains(" access: ") && line.contains("cause=\"fragmented\""))
    })?;
    let mut client = stream::open(&stage.client, stage.address)?;
    client.write_all(&hello)?;
    let origin = stream::accept_with(&stage.listener, &hello)?;
    ensure!(stage.passed_up()?.get("fragments") == Some(&1), "the next one is relayed: {:?}", stage.passed_up()?);
    Pair { client, origin }.exchange(2, LENGTH, LENGTH)?;
    // The hello itself is not fragmented.
    let last = Instant::now();
    while let Err(error) = stage.connect_in(&[&hello]) {
        ensure!(last.elapsed() < AGAIN_WITHIN, "not steered within {AGAIN_WITHIN:?}: {error:#}");
    }
    Ok(())
}
