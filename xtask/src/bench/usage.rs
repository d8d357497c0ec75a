//! What processes and the kernel use, from /proc.

use std::collections::HashMap;
use std::fs;
use std::ops::{Add, AddAssign, Sub};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Ticks in a second of the times in /proc: USER_HZ, 100 on every architecture that Sluice is built for.
const TICKS: f64 = 100.0;

/// Seconds of processor time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Processor {
    /// Of the router's processes, in user mode.
    pub user: f64,
    /// Of the router's processes, in the kernel.
    pub system: f64,
    /// Of the whole machine, in softirq.
    pub softirq: f64,
    /// Of the whole machine, all that is not idle.
    pub busy: f64,
}

impl Processor {
    /// Of some processes, and the machine.
    pub fn of(processes: &[u32]) -> Result<Processor> {
        let mut total = Processor::of_line("cpu")?;
        for process in processes {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).context("a router's process has ended")?;
            let (_, after_name) = stat.rsplit_once(')').context("no name in stat")?;
            // proc_pid_stat(5), fields 14 and 15.
            let mut times = after_name.split_whitespace().skip(11).map_while(|ticks| ticks.parse::<f64>().ok());
            total.user += times.next().context("no utime")? / TICKS;
            total.system += times.next().context("no stime")? / TICKS;
        }
        Ok(total)
    }

    /// The line of /proc/stat with this name, without processes.
    fn of_line(name: &str) -> Result<Processor> {
        let stat = fs::read_to_string("/proc/stat")?;
        let mut lines = stat.lines().map(str::split_whitespace);
        let line = lines.find_map(|mut fields| (fields.next() == Some(name)).then_some(fields));
        // proc_stat(5): user nice system idle iowait irq softirq steal; guest time is in user already.
        let line = line.with_context(|| format!("/proc/stat has no {name}"))?;
        let fields: Vec<f64> = line.filter_map(|field| field.parse().ok()).collect();
        let [user, nice, system, _, _, irq, softirq, ..] = fields[..] else {
            anyhow::bail!("/proc/stat has another form: {fields:?}")
        };
        let busy = (user + nice + system + irq + softirq) / TICKS;
        Ok(Processor { softirq: softirq / TICKS, busy, ..Processor::default() })
    }
}

/// Seconds in which the processor with this number was not idle.
pub fn busy(number: usize) -> Result<f64> {
    Processor::of_line(&format!("cpu{number}")).map(|processor| processor.busy)
}

impl Sub for Processor {
    type Output = Processor;

    fn sub(self, before: Processor) -> Processor {
        Processor {
            user: self.user - before.user,
            system: self.system - before.system,
            softirq: self.softirq - before.softirq,
            busy: self.busy - before.busy,
        }
    }
}

impl Add for Processor {
    type Output = Processor;

    fn add(self, more: Processor) -> Processor {
        Processor {
            user: self.user + more.user,
            system: self.system + more.system,
            softirq: self.softirq + more.softirq,
            busy: self.busy + more.busy,
        }
    }
}

impl AddAssign for Processor {
    fn add_assign(&mut self, more: Processor) {
        *self = *self + more;
    }
}

/// Seconds of processor time of the children of this process that have ended and were waited for.
pub fn ended_children() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(')').context("no name in stat")?;
    // proc_pid_stat(5), fields 16 and 17.
    let ticks: Vec<f64> =
        after_name.split_whitespace().skip(13).take(2).map(str::parse).collect::<Result<_, _>>().context("times")?;
    Ok(ticks.iter().sum::<f64>() / TICKS)
}

/// A process and all that descend from it.
pub fn family(process: u32) -> Result<Vec<u32>> {
    let mut parents = HashMap::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // A process that ends meanwhile does not belong to a running router.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut family = vec![process];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    Ok(family)
}

/// Bytes of memory, and descriptors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Resident, of the router's processes.
    pub rss: i64,
    /// The same with shared pages divided among those who share them.
    pub pss: i64,
    /// Live objects in the machine's slab caches for sockets, their files and map entries.
    pub slab: i64,
    /// Memory of the router's maps, as the kernel reports it.
    pub maps: i64,
    /// Descriptors of the router's processes.
    pub descriptors: i64,
}

impl Memory {
    /// Of some processes, the kernel, and the maps pinned in a folder.
    pub fn of(processes: &[u32], pins: Option<&Path>) -> Result<Memory> {
        let mut total = Memory { slab: slab()?, ..Memory::default() };
        for process in processes {
            let folder = Path::new("/proc").join(process.to_string());
            let rollup = fs::read_to_string(folder.join("smaps_rollup")).context("a router's process has ended")?;
            total.rss += kib(&rollup, "Rss:")? * 1024;
            total.pss += kib(&rollup, "Pss:")? * 1024;
            total.descriptors += fs::read_dir(folder.join("fd"))?.count() as i64;
        }
        if let Some(pins) = pins {
            total.maps = pinned_maps(pins)?;
        }
        Ok(total)
    }
}

impl Sub for Memory {
    type Output = Memory;

    fn sub(self, before: Memory) -> Memory {
        Memory {
            rss: self.rss - before.rss,
            pss: self.pss - before.pss,
            slab: self.slab - before.slab,
            maps: self.maps - before.maps,
            descriptors: self.descriptors - before.descriptors,
        }
    }
}

fn kib(text: &str, field: &str) -> Result<i64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field)).with_context(|| format!("no {field}"))?;
    line.trim().trim_end_matches("kB").trim().parse().with_context(|| format!("{field} {line}"))
}

/// Caches that sockets, their files and map entries are in. The others are left out because whatever else runs on the
/// machine uses them.
const CACHES: [&str; 11] = [
    "TCP",
    "request_sock_TCP",
    "tw_sock_TCP",
    "tcp_bind",
    "skbuff_",
    "sock_inode_cache",
    "filp",
    "dentry",
    "lsm_",
    "eventpoll_",
    "kmalloc-",
];

/// slabinfo(5): live objects of [`CACHES`] times their size, after droppable caches (dentries without users) were
/// dropped. Free pages of the caches do not count.
fn slab() -> Result<i64> {
    fs::write("/proc/sys/vm/drop_caches", "2").context("dropping the kernel's caches")?;
    Ok(live(&fs::read_to_string("/proc/slabinfo").context("reading /proc/slabinfo")?))
}

fn live(slabinfo: &str) -> i64 {
    let cache = |line: &str| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?;
        let live: i64 = fields.next()?.parse().ok()?;
        let size: i64 = fields.nth(1)?.parse().ok()?;
        CACHES.iter().any(|counted| name.starts_with(counted)).then_some(live * size)
    };
    slabinfo.lines().filter_map(cache).sum()
}

/// Sum of `bytes_memlock` of the maps that are pinned in a folder and those below.
fn pinned_maps(folder: &Path) -> Result<i64> {
    let mut total = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            total += pinned_maps(&path)?;
            continue;
        }
        let output = Command::new("bpftool").args(["-j", "map", "show", "pinned"]).arg(&path).output();
        let output = output.context("bpftool cannot be run")?;
        // Links are pinned as well; bpftool says of them that they are no maps.
        if output.status.success() {
            total += memlock(&String::from_utf8_lossy(&output.stdout))?;
        }
    }
    Ok(total)
}

fn memlock(json: &str) -> Result<i64> {
    let (_, after) = json.split_once("\"bytes_memlock\":").context("bpftool says no bytes_memlock")?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    ensure!(!digits.is_empty(), "bpftool says bytes_memlock{after}");
    Ok(digits.parse()?)
}

/// TCP sockets of the namespace that the calling thread is in (`inuse` of /proc/net/sockstat; listening ones count).
pub fn sockets() -> Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/sockstat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: inuse ")).context("no TCP in sockstat")?;
    line.split(' ').next().context("no number")?.parse().context("sockets in use")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bpftool_says_is_read() {
        let said = r#"{"id":7,"type":"hash","name":"flows","bytes_key":36,"bytes_memlock":8390144,"frozen":0}"#;
        assert_eq!(memlock(said).unwrap(), 8_390_144);
        assert!(memlock(r#"{"error":"not a map"}"#).is_err());
    }

    #[test]
    fn live_objects_of_sockets_are_added_up() {
        let slabinfo = "slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit>
ext4_inode_cache 1000 1200 1184 27 8 : tunables 0 0 0 : slabdata 1 1 0
TCPv6 3 13 2496 13 8 : tunables 0 0 0 : slabdata 1 1 0
kmalloc-512 2 16 512 16 2 : tunables 0 0 0 : slabdata 1 1 0
";
        assert_eq!(live(slabinfo), 3 * 2496 + 2 * 512);
    }

    #[test]
    fn this_process_has_memory_descriptors_and_a_family() {
        let me = std::process::id();
        assert!(family(me).unwrap().contains(&me));
        let before = Processor::of(&[me]).unwrap();
        assert!(before.busy >= before.softirq);
        let first = busy(0).unwrap();
        assert!(first <= Processor::of(&[]).unwrap().busy);
    }
}
