//! Source ports of the kernel's dials, outside the stack's own range of ephemeral ports.

pub mod range;

use std::{fs, io};

use super::instances::{self, Instance};
use super::pin_folder::PinFolder;

pub use range::PortRange;

/// Lowest port of the kernel's dials, unless the stack's range leaves more room elsewhere. Lower ports are those of
/// well-known services, which firewalls match by number.
const LOWEST: u16 = 10_240;
/// Smallest default range: each port is reused after as many dials to an endpoint.
const LEAST: usize = 1024;

/// The stack's own range, of the reader's network namespace.
const LOCAL_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Why there are no ports to dial from.
#[derive(Debug, thiserror::Error)]
pub enum PortsError {
    /// The stack's range cannot be read.
    #[error("cannot read {LOCAL_RANGE}: {0}")]
    Unreadable(io::Error),
    /// The file contains no range.
    #[error("{LOCAL_RANGE} holds `{0}`, which is not a range of ports")]
    Odd(String),
    /// The operator's range and the stack's have ports in common.
    #[error(
        "--snat-ports {wanted} and net.ipv4.ip_local_port_range ({local}) have ports in common: the router's own \
         connections would collide with those that the kernel dials; name ports outside {local}"
    )]
    Overlap {
        /// The operator's.
        wanted: PortRange,
        /// The stack's.
        local: PortRange,
    },
    /// The operator's range and that of another agent have ports in common.
    #[error(
        "--snat-ports {wanted} and the ports of instance {} (process {}, {}) have ports in common: each would take \
         connections of the other for its own; name other ports",
        other.name, other.pid, other.ports
    )]
    Taken {
        /// The operator's.
        wanted: PortRange,
        /// The other agent.
        other: Instance,
    },
    /// The stack's range and those of other agents leave too few.
    #[error(
        "net.ipv4.ip_local_port_range ({local}){} leaves fewer than {LEAST} ports in a row between {LOWEST} and 65535 \
         to dial from; make it smaller, or name ports with --snat-ports",
        and(others)
    )]
    OneOrMany {
        /// The stack's.
        local: PortRange,
        /// Other agents.
        others: Vec<Instance>,
    },
}

/// The range to dial from: the operator's, or the largest part above `LOWEST` that the stack's range and those of other
/// agents leave. `own` is the caller's pin folder.
///
/// # Errors
/// See [`PortsError`].
pub fn choose(wanted: Option<PortRange>, own: &PinFolder) -> Result<PortRange, PortsError> {
    let text = fs::read_to_string(LOCAL_RANGE).map_err(PortsError::Unreadable)?;
    beside(local_range(&text)?, instances::others(own), wanted)
}

fn local_range(text: &str) -> Result<PortRange, PortsError> {
    let odd = || PortsError::Odd(text.trim().to_owned());
    let mut numbers = text.split_whitespace().map(str::parse::<u16>);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(low)), Some(Ok(high)), None) if low <= high => Ok(PortRange { low, high }),
        _ => Err(odd()),
    }
}

fn beside(local: PortRange, others: Vec<Instance>, wanted: Option<PortRange>) -> Result<PortRange, PortsError> {
    if let Some(wanted) = wanted {
        if wanted.overlaps(local) {
            return Err(PortsError::Overlap { wanted, local });
        }
        let other = others.into_iter().find(|other| wanted.overlaps(other.ports));
        return other.map_or(Ok(wanted), |other| Err(PortsError::Taken { wanted, other }));
    }
    let mut taken: Vec<PortRange> = others.iter().map(|other| other.ports).chain([local]).collect();
    taken.sort_by_key(|range| range.low);
    let end = u32::from(u16::MAX) + 1;
    let ends = taken.iter().map(|range| (u32::from(range.low), u32::from(range.high) + 1)).chain([(end, end)]);
    let (mut largest, mut next) = (None, u32::from(LOWEST));
    for (low, after) in ends {
        let free = low.saturating_sub(next);
        if free as usize >= LEAST && largest.is_none_or(|(_, most)| free > most) {
            largest = Some((next, free));
        }
        next = next.max(after);
    }
    let (low, count) = largest.ok_or(PortsError::OneOrMany { local, others })?;
    // Neither exceeds 65,535: the part ends before a port that is in use.
    Ok(PortRange { low: low as u16, high: (low + count - 1) as u16 })
}

/// Other agents with their ports, as the continuation of a sentence.
fn and(others: &[Instance]) -> String {
    others.iter().map(|other| format!(" and instance {} ({})", other.name, other.ports)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: u16, high: u16) -> PortRange {
        PortRange { low, high }
    }

    #[test]
    fn the_larger_part_beside_the_stacks_range_is_taken() {
        let chosen = |low, high| beside(range(low, high), Vec::new(), None).ok();
        assert_eq!(chosen(32_768, 60_999), Some(range(10_240, 32_767)));
        assert_eq!(chosen(1024, 32_767), Some(range(32_768, 65_535)));
        assert_eq!(chosen(20_000, 30_000), Some(range(30_001, 65_535)));
        assert_eq!(chosen(1, 5000), Some(range(10_240, 65_535)), "never below the lowest");
        assert_eq!(chosen(1024, 65_535), None);
        assert_eq!(chosen(11_264, 65_535), Some(range(10_240, 11_263)), "just enough");
        assert_eq!(chosen(11_263, 65_535), None, "one too few");
        assert_eq!(chosen(20_480, 55_295), Some(range(10_240, 20_479)), "of two that are equal, the first");
        assert_eq!(chosen(11_000, 65_000), None, "too few on either side");
        let error = beside(range(1024, 65_535), Vec::new(), None).unwrap_err().to_string();
        assert!(error.contains("1024-65535") && error.contains("--snat-ports"), "{error}");
    }

    #[test]
    fn a_range_of_the_operator_must_not_meet_the_stacks() {
        let local = range(32_768, 60_999);
        for beside_it in [range(20_000, 20_063), range(61_000, 65_535)] {
            assert_eq!(beside(local, Vec::new(), Some(beside_it)).ok(), Some(beside_it));
        }
        for both in [range(30_000, 40_000), range(40_000, 50_000), range(60_999, 61_000), range(1024, 65_535)] {
            assert!(matches!(beside(local, Vec::new(), Some(both)), Err(PortsError::Overlap { .. })), "{both}");
        }
    }

    #[test]
    fn other_agents_keep_their_ports() {
        let local = range(32_768, 60_999);
        let other = |low, high| Instance { name: "edge".to_owned(), pid: 7, ports: range(low, high) };
        assert_eq!(beside(local, vec![other(10_240, 32_767)], None).ok(), Some(range(61_000, 65_535)));
        assert_eq!(beside(local, vec![other(20_000, 20_063)], None).ok(), Some(range(20_064, 32_767)));
        let error = beside(local, vec![other(10_240, 32_767)], Some(range(32_000, 32_100))).unwrap_err().to_string();
        assert!(error.contains("instance edge (process 7, 10240-32767)"), "{error}");
        let all = vec![other(10_240, 32_767), other(61_000, 65_535)];
        let error = beside(local, all, None).unwrap_err().to_string();
        assert!(error.contains("and instance edge (10240-32767) and instance edge (61000-65535) leaves"), "{error}");
    }

    #[test]
    fn ranges_are_read_as_they_are_written() {
        assert_eq!("10240-32767".parse(), Ok(range(10_240, 32_767)));
        assert_eq!("7-7".parse(), Ok(range(7, 7)));
        assert_eq!((range(7, 7).count(), range(20_000, 20_063).count(), range(1, 65_535).count()), (1, 64, 65_535));
        for bad in ["", "1", "-", "5-4", "0-9", "1-65536", "a-b", "1-2-3"] {
            assert!(bad.parse::<PortRange>().is_err_and(|why| why.contains("LOW-HIGH")), "{bad}");
        }
        assert_eq!(local_range("32768\t60999\n").ok(), Some(range(32_768, 60_999)));
        assert_eq!(local_range("7 7").ok(), Some(range(7, 7)));
        for odd in ["", "1", "2 1", "1 2 3", "x y"] {
            assert!(local_range(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn this_hosts_range_can_be_read() {
        assert_eq!(choose(Some(range(1, 1)), &PinFolder::of("nobody")).ok(), Some(range(1, 1)));
    }
}
