//! Detects tables of `iptables-legacy` with an effect (linux/netfilter_ipv4/ip_tables.h, …_ipv6/ip6_tables.h). Their
//! rules are not read.

use std::{fs, io};

use router_sys::socket::{Xtables, xtables};
use socket2::{Domain, Socket, Type};

/// Bytes of a table's name.
const NAME: usize = 32;
/// Size of `struct ipt_getinfo`: name, hooks, the first entry of each of five hooks, each policy's entry, number of
/// entries, bytes.
const INFO: usize = NAME + 4 + 20 + 20 + 4 + 4;
/// Size of `struct ipt_get_entries` before its entries: name and number of bytes, padded to 8.
const ENTRIES: usize = 40;
/// Hooks that packets of steered connections pass: all but FORWARD.
const HOOKS: [usize; 4] = [0, 1, 3, 4];
/// The verdict `ACCEPT` as encoded in tables.
const ACCEPT: i32 = -2;
/// Most bytes of a table without rules; larger tables count as having rules.
const MOST: usize = 16 << 10;

/// The two versions of IP.
struct Version {
    command: &'static str,
    names: &'static str,
    v6: bool,
    domain: Domain,
    /// Offset of `target_offset` in an entry.
    target: usize,
}

const VERSIONS: [Version; 2] = [
    Version {
        command: "iptables-legacy",
        names: "/proc/thread-self/net/ip_tables_names",
        v6: false,
        domain: Domain::IPV4,
        target: 88,
    },
    Version {
        command: "ip6tables-legacy",
        names: "/proc/thread-self/net/ip6_tables_names",
        v6: true,
        domain: Domain::IPV6,
        target: 140,
    },
];

/// A table with an effect, as `explain` names it.
///
/// # Errors
/// The system calls'. A kernel without such tables is no error.
pub fn active_table() -> io::Result<Option<String>> {
    for version in &VERSIONS {
        let names = match fs::read_to_string(version.names) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            names => names?,
        };
        for table in names.lines().filter(|table| !table.is_empty()) {
            if is_active(version, table)? {
                return Ok(Some(format!("table {table} of {} has rules, which are not read", version.command)));
            }
        }
    }
    Ok(None)
}

fn is_active(version: &Version, table: &str) -> io::Result<bool> {
    // Any socket of that version will do.
    let socket = Socket::new(version.domain, Type::DGRAM, None)?;
    let mut info = vec![0; INFO];
    info.iter_mut().zip(table.bytes()).for_each(|(to, from)| *to = from);
    xtables(&socket, version.v6, Xtables::Info, &mut info)?;
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    };
    let (hooks, entries, size) = (number(&info, NAME), number(&info, INFO - 8), number(&info, INFO - 4) as usize);
    // Without rules a table has a policy for each hook, and an entry at the end.
    if entries != hooks.count_ones() + 1 || size > MOST {
        return Ok(true);
    }
    let mut table = info[..NAME].to_vec();
    table.extend((size as u32).to_ne_bytes());
    table.resize(ENTRIES + size, 0);
    xtables(&socket, version.v6, Xtables::Entries, &mut table)?;
    Ok(HOOKS.iter().filter(|hook| hooks & 1 << **hook != 0).any(|hook| {
        let entry = ENTRIES + number(&info, NAME + 24 + 4 * hook) as usize;
        let target = number(&table, entry + version.target) as usize & 0xffff;
        // `struct xt_entry_target`, then the verdict.
        number(&table, entry + target + 32) as i32 != ACCEPT
    }))
}
