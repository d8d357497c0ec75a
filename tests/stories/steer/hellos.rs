//! Deliveries of a hello: in one or several segments, split anywhere, merged with the bytes after it.

use std::io::{Read, Write};

use anyhow::{Context, Result, ensure};
use tests::hello::{client_hello, short_hello};
use tests::sluice::DataPath;
use tests::steering::{Family, HOST, Setup, Stage};
use tests::stream::{self, Content, Pair, joined};

on_both_data_paths! {
    a_short_hello_cut_at_every_byte,
    a_long_hello_cut_at_every_byte,
    a_long_hello_cut_on_loopback,
    a_long_hello_cut_into_three,
    a_long_hello_cut_into_many,
    a_hello_with_what_follows_in_the_same_write,
}

fn a_short_hello_cut_at_every_byte(data_path: DataPath) -> Result<()> {
    let hello = short_hello(HOST)?;
    ensure!(hello.len() < 600, "{} bytes are not short", hello.len());
    // Split at 0: in one segment.
    cuts(&Stage::new(data_path, Setup::new(Family::V4))?, &hello, 1)
}

fn a_long_hello_cut_at_every_byte(data_path: DataPath) -> Result<()> {
    let hello = client_hello(HOST)?;
    ensure!(hello.len() > 1200, "{} bytes are not long", hello.len());
    cuts(&Stage::new(data_path, Setup::new(Family::V6))?, &hello, 1)
}

fn a_long_hello_cut_on_loopback(data_path: DataPath) -> Result<()> {
    for family in [Family::V4, Family::V6] {
        cuts(&Stage::loopback(data_path, family)?, &client_hello(HOST)?, 11)?;
    }
    Ok(())
}

fn cuts(stage: &Stage, hello: &[u8], step: usize) -> Result<()> {
    let mut connections = 0;
    for cut in (0..hello.len()).step_by(step) {
        let (first, second) = hello.split_at(cut);
        let connection = || stage.connect_in(&[first, second])?.greet();
        connection().with_context(|| format!("cut after {cut} of {} bytes", hello.len()))?;
        connections += 1;
    }
    stage.all_ended()?;
    stage.carried(connections)
}

fn a_long_hello_cut_into_three(data_path: DataPath) -> Result<()> {
    let hello = client_hello(HOST)?;
    for offloads in [true, false] {
        let stage = Stage::new(data_path, Setup { offloads, ..Setup::new(Family::V4) })?;
        for first in (1..hello.len() - 1).step_by(97) {
            for second in (first + 1..hello.len()).step_by(131) {
                let pieces = [&hello[..first], &hello[first..second], &hello[second..]];
                let connection = || stage.connect_in(&pieces)?.greet();
                connection().with_context(|| format!("cut after {first} and {second} bytes"))?;
            }
        }
        stage.all_ended()?;
    }
    Ok(())
}

/// The program holds back as many segments as a first window of ten contains, less those after the hello.
fn a_long_hello_cut_into_many(data_path: DataPath) -> Result<()> {
    const MOST: usize = 8;
    let hello = client_hello(HOST)?;
    for setup in [Setup::new(Family::V4), Setup { offloads: false, ..Setup::new(Family::V6) }] {
        let stage = Stage::new(data_path, setup)?;
        for pieces in 2..=MOST {
            let pieces: Vec<&[u8]> = hello.chunks(hello.len().div_ceil(pieces)).collect();
            let exchange = || stage.connect_in(&pieces)?.exchange(1, 100_000, 100_000);
            exchange().with_context(|| format!("cut into {}", pieces.len()))?;
        }
        stage.all_ended()?;
    }
    Ok(())
}

/// Clients may send early data with their hello. On both data paths, every byte arrives once.
fn a_hello_with_what_follows_in_the_same_write(data_path: DataPath) -> Result<()> {
    for offloads in [true, false] {
        let stage = Stage::new(data_path, Setup { offloads, ..Setup::new(Family::V4) })?;
        for length in [1, 100, 1000, 2500, 4096, 10_000, 60_000] {
            let hello = client_hello(HOST)?;
            let mut early = Vec::new();
            Content::of(length, length).send(&mut early, length, |_| ())?;
            let mut client = stream::open(&stage.client, stage.address)?;
            let whole = [hello, early].concat();
            let origin = std::thread::scope(|scope| {
                let writer = scope.spawn(|| Ok(client.write_all(&whole)?));
                let mut origin = stream::accept(&stage.listener)?;
                let mut received = vec![0; whole.len()];
                origin.read_exact(&mut received)?;
                ensure!(received == whole, "with {length} bytes after the hello, something else arrived");
                joined(writer)?;
                Ok(origin)
            })?;
            Pair { client, origin }.exchange(length, 100_000, 100_000)?;
        }
        stage.all_ended()?;
    }
    Ok(())
}
