//! A flood of SYNs from many sources that do not exist, as raw IPv4 packets (raw(7)), from one processor.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use rustix::thread::{CpuSet, sched_setaffinity};
use socket2::SockRef;

/// What is printed when the first packet was sent.
pub const FLOODING: &str = "flooding";
/// Sources are of 198.18.0.0/15, which belongs to benchmarks (RFC 2544 §C.2.2).
const SOURCES: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const SOURCE_BITS: u32 = 17;
/// A flood that nobody has ended until then fails.
const LONGEST: Duration = Duration::from_secs(60);
/// Packets between two looks at the clock.
const BATCH: u32 = 64;

/// What to send.
#[derive(Args)]
pub struct Arguments {
    /// Destination.
    #[arg(long)]
    to: SocketAddrV4,
    /// The processor that sends.
    #[arg(long)]
    processor: usize,
    /// The interface that they leave by; else the route chooses it.
    #[arg(long)]
    through: Option<String>,
}

/// Sends until stdin ends, and prints how many packets, and in how many nanoseconds.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut processors = CpuSet::new();
    processors.set(arguments.processor);
    sched_setaffinity(None, &processors).context("the processor cannot be chosen")?;
    let socket = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW)).context("a raw socket")?;
    if let Some(interface) = &arguments.through {
        SockRef::from(&socket).bind_device(Some(interface.as_bytes())).context("the interface cannot be chosen")?;
    }
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    thread::spawn(|| {
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        IS_OVER.store(true, Ordering::Relaxed);
    });
    let to = arguments.to;
    let begin = Instant::now();
    let mut sent = 0_u64;
    for number in (0..=u32::MAX).cycle() {
        match sendto(&socket, &syn(number, to), SendFlags::empty(), &SocketAddrV4::new(*to.ip(), 0)) {
            Ok(_) => sent += 1,
            Err(Errno::NOBUFS | Errno::AGAIN) => {}
            Err(error) => return Err(error).context("sending a SYN"),
        }
        if number == 0 {
            println!("{FLOODING}");
        }
        if number % BATCH == 0 {
            if IS_OVER.load(Ordering::Relaxed) {
                break;
            }
            if begin.elapsed() > LONGEST {
                bail!("nobody has ended the flood in {LONGEST:?}");
            }
        }
    }
    println!("{sent} {}", begin.elapsed().as_nanos());
    Ok(())
}

/// The `number`th SYN: an IPv4 header, whose checksum the kernel writes, and a TCP header without options.
fn syn(number: u32, to: SocketAddrV4) -> [u8; 40] {
    // An odd factor visits every source before one comes again.
    let source = SOURCES | number.wrapping_mul(0x9e37_79b1) & ((1 << SOURCE_BITS) - 1);
    let source = Ipv4Addr::from_bits(source);
    let port = 1024 + (number % 60_000) as u16;
    let mut packet = [0; 40];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&40_u16.to_be_bytes());
    packet[8] = 64;
    packet[9] = 6;
    packet[12..16].copy_from_slice(&source.octets());
    packet[16..20].copy_from_slice(&to.ip().octets());
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet[22..24].copy_from_slice(&to.port().to_be_bytes());
    packet[24..28].copy_from_slice(&number.to_be_bytes());
    packet[32] = 5 << 4;
    packet[33] = 0x02;
    packet[34..36].copy_from_slice(&u16::MAX.to_be_bytes());
    let checksum = checksum(&packet);
    packet[36..38].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// The TCP checksum of a packet whose field is 0 (RFC 9293 §3.1).
fn checksum(packet: &[u8; 40]) -> u16 {
    let words = packet[12..].chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum::<u32>() + 6 + 20;
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded + (folded >> 16)) as u16)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_syn_is_valid_and_its_source_one_of_many() {
        let to = SocketAddrV4::new(Ipv4Addr::new(10, 77, 2, 1), 8443);
        let mut sources = HashSet::new();
        for number in 0..1 << SOURCE_BITS {
            let packet = syn(number, to);
            let words = packet[12..].chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
            let sum = words.sum::<u32>() + 26;
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "SYN {number}");
            assert_eq!((packet[12], packet[13] & 0xfe), (198, 18));
            sources.insert(packet[12..16].to_vec());
        }
        assert_eq!(sources.len(), 1 << SOURCE_BITS);
    }
}
