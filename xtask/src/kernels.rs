//! `cargo xtask verify --kernels`: the kernel program on Debian's kernels, each booted in qemu.
//!
//! Loads and attaches every variant that the agent may choose, and runs stories of `tests` there: the same test
//! programs as on this machine, from an initramfs with nothing but their requirements.

mod guest;
mod initramfs;
mod packages;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::process::{self, cargo};
use crate::tally::Tally;
use crate::{ebpf, install};
use guest::Guest;
use initramfs::Initramfs;
use packages::{SUITES, Suite, UnpackedKernel};

/// What booting kernels needs, and unpacking them.
const PROGRAMS: &[(&str, &str)] = &[
    ("qemu-system-x86_64", "qemu-system-x86"),
    // The guest's shell, and the only one of its programs that is linked statically.
    ("busybox", "busybox-static"),
    ("ip", "iproute2"),
    ("strip", "binutils"),
    ("xdp-loader", "xdp-tools"),
];

/// Modules of cloud kernels that stories need, each after those that it depends on: links and hooks first, then those
/// of stories for guests alone.
const MODULES: [&str; 8] = ["veth", "sch_ingress", "cls_bpf", "ipvlan", "xfrm_algo", "xfrm_user", "ah4", "ah6"];

/// Programs of this machine that the tests call.
const TOOLS: [&str; 3] = ["ip", "tc", "xdp-loader"];

/// Programs of xdp-tools for interfaces that a story puts the gate beside.
const FILTERS: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/bpf/xdpfilt_alw_all.o", "/usr/lib/x86_64-linux-gnu/bpf/xdpfilt_alw_tcp.o"];

/// A test program, and those of its tests that are run in guests.
struct Tests {
    /// Where its source is, as cargo names it.
    source: &'static str,
    names: &'static [(Guests, &'static str)],
}

/// The guests that run a test.
enum Guests {
    All,
    /// Those with links of TCX.
    Tcx,
    /// Those of these suites: their kernels stand for the others.
    Of(&'static [&'static str]),
}

use Guests::{All, Of, Tcx};

const OLDEST_AND_NEWEST: Guests = Of(&["bookworm", "sid"]);

/// As few as show it all: without KVM each program takes seconds to load.
const TESTS: &[Tests] = &[
    Tests { source: "tests/kernel_maps.rs", names: &[(All, "the_verifier_has_room_to_spare")] },
    Tests {
        source: "tests/kernel_gate.rs",
        names: &[(All, "syns_are_limited_by_source_and_listener"), (All, "agreement::about_mutated_packets")],
    },
    Tests {
        source: "tests/kernel_cookies.rs",
        names: &[(All, "a_syn_is_answered_with_a_cookie_that_the_stack_accepts")],
    },
    Tests {
        source: "tests/kernel_adoption.rs",
        names: &[
            (All, "filters_of_older_kernels_are_replaced_too"),
            (Tcx, "the_next_agent_goes_on_with_the_maps_and_puts_its_programs_in_the_place_of_the_old"),
        ],
    },
    Tests {
        source: "stories/main.rs",
        names: &[
            (
                OLDEST_AND_NEWEST,
                "cleartext::a_request_goes_to_the_endpoint_as_it_is_and_one_for_another_host_ends_the_connection",
            ),
            // Told here alone: other kernels may not let programs replace functions. One shows that the oldest does.
            (OLDEST_AND_NEWEST, "gate::chain::cleanup_removes_the_gate_from_a_chain_and_nothing_else"),
            (Of(&["sid"]), "gate::chain::the_gate_joins_a_chain_outlives_its_agent_and_leaves"),
            (Of(&["sid"]), "gate::chain::the_gate_goes_on_as_the_last_of_a_chain"),
            // Told here alone: other kernels may lack the modules.
            (Of(&["trixie"]), "limits::connections_whose_packets_begin_to_be_authenticated_wait"),
            (Of(&["trixie"]), "pods::all_clients_of_a_node_with_ipvlan_pods_are_answered"),
            // With links of TCX and without.
            (
                Of(&["bookworm", "trixie"]),
                "keep::cleanup_removes_what_a_killed_agent_left_and_nothing_of_one_that_lives",
            ),
            (OLDEST_AND_NEWEST, "steer::agent::a_killed_agents_connections_are_the_next_ones"),
            (Of(&["trixie"]), "steer::kernel_log::a_connection_is_logged_from_its_decision_to_its_end"),
            // Over IPv4 and over IPv6.
            (OLDEST_AND_NEWEST, "steer::endpoints::in_the_kernel::one_endpoint_of_two_refuses"),
        ],
    },
];

/// Boots every kernel and runs the tests there.
///
/// # Errors
/// When a kernel or a program cannot be had, and when a test fails; with the end of what that kernel's console showed.
pub fn run(root: &Path) -> Result<Tally> {
    ensure!(process::is_root(), "installing and unpacking kernels needs root: run it again with sudo");
    let missing = PROGRAMS.iter().filter(|(program, _)| !install::is_there(program)).map(|(_, package)| *package);
    install::packages(&missing.collect::<Vec<_>>())?;
    ebpf::build_all(root)?;
    let sluice = process::build_tested_sluice(root)?;
    let programs = build_tests(root)?;
    let folder = process::target(root).join("kernels");
    let mut base = Initramfs::new(folder.join("programs"))?;
    base.program("sluice", &sluice)?;
    for (name, program) in &programs {
        base.program(name, program)?;
    }
    for tool in TOOLS {
        base.program(tool, &find(tool)?)?;
    }
    for filter in FILTERS {
        base.file(filter.trim_start_matches('/'), Path::new(filter))?;
    }
    base.file("bin/busybox", &find("busybox")?)?;
    // Stories look for it where it was when they were compiled.
    base.tree(&root.join("examples"))?;
    base.folder(&root.join("tests"));

    // Kernels are had one after the other. As many boot side by side as there are processors: without KVM, more would only be late.
    let kernels = SUITES.iter().map(|suite| UnpackedKernel::of(&folder, suite)).collect::<Result<Vec<_>>>()?;
    let guests = kernels.iter().zip(&SUITES).map(|(kernel, suite)| {
        let image = folder.join(suite.name).join("initramfs.cpio");
        let modules = MODULES.iter().map(|name| kernel.module(name)).collect::<Result<Vec<_>>>()?;
        base.write(&image, &script(suite), &modules)?;
        Ok(Guest { kernel, initramfs: image, tests: expected(suite) })
    });
    let guests = guests.collect::<Result<Vec<_>>>()?;
    // The newest kernel, whose programs take longest to load, is the first.
    let waiting = Mutex::new(guests.iter().rev());
    let next = || waiting.lock().ok().and_then(|mut guests| guests.next());
    let boot = || std::iter::from_fn(next).map(|guest| (guest, report(guest))).collect::<Vec<_>>();
    let results = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..thread::available_parallelism().map_or(1, NonZero::get)).map(|_| scope.spawn(boot)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| anyhow!("a thread panicked")))
            .collect::<Result<Vec<_>>>()
    })?;
    let (mut total, mut failed) = (Tally::default(), Vec::new());
    for (guest, result) in results.into_iter().flatten() {
        let (tally, good) = result.with_context(|| format!("Linux {}", guest.kernel.version))?;
        total.join(&tally);
        if !good {
            failed.push(guest.kernel.version.as_str());
        }
    }
    if !failed.is_empty() {
        println!("total: {}", total.line());
        bail!("the kernel program fails on Linux {}; the end of what the console showed is above", failed.join(", "));
    }
    Ok(total)
}

/// Boots a guest and prints what its tests said. Whether all of them ran and passed.
fn report(guest: &Guest<'_>) -> Result<(Tally, bool)> {
    let (version, started) = (&guest.kernel.version, Instant::now());
    let mut tally = Tally::default();
    let said = guest.boot(|line| {
        tally.add(line);
        if line.contains(" ... ") || line.starts_with("margin: ") {
            println!("kernel {version}, {:.0} s: {line}", started.elapsed().as_secs_f32());
        }
    })?;
    let good = said.is_complete() && tally.failed == 0 && tally.passed == guest.tests;
    let tail = if good { String::new() } else { format!("\n{}", said.tail()) };
    println!("kernel {version}: {} in {:.0} s{tail}", tally.line(), started.elapsed().as_secs_f32());
    Ok((tally, good))
}

/// How many tests a guest runs.
fn expected(suite: &Suite) -> u64 {
    TESTS.iter().map(|tests| tests.of(suite).count()).sum::<usize>() as u64
}

/// Builds the test programs as `cargo xtask test` does, and returns them by their names in the guest.
fn build_tests(root: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut command = cargo(root);
    command.args(["test", "--locked", "--workspace", "--lib", "--bins", "--tests", "--no-run"]);
    command.args(process::TESTED_FEATURES);
    let output = command.stderr(std::process::Stdio::piped()).output().context("cargo could not be started")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "building the tests failed:\n{said}");
    TESTS.iter().map(|tests| Ok((tests.name(), root.join(executable(&said, tests.source)?)))).collect()
}

/// The program that cargo has built of a test: `  Executable tests/kernel_maps.rs (target/debug/deps/kernel_maps-…)`.
fn executable<'s>(said: &'s str, source: &str) -> Result<&'s str> {
    let mut programs = said.lines().filter_map(|line| line.trim().strip_prefix("Executable ")?.split_once(" ("));
    let found = programs.find(|(of, _)| *of == source).and_then(|(_, program)| program.strip_suffix(')'));
    found.with_context(|| format!("cargo does not say what it has built of {source}"))
}

impl Tests {
    /// Name of the program in the guest.
    fn name(&self) -> &'static str {
        self.source.trim_end_matches("/main.rs").trim_start_matches("tests/").trim_end_matches(".rs")
    }

    /// Those that a suite's guest runs.
    fn of(&self, suite: &Suite) -> impl Iterator<Item = &'static str> {
        let is_run = |guests: &Guests| match guests {
            All => true,
            Tcx => suite.tcx,
            Of(names) => names.contains(&suite.name),
        };
        self.names.iter().filter(move |(guests, _)| is_run(guests)).map(|(_, name)| *name)
    }
}

/// The init script of a suite's guest. Without KVM, the usual number of packets that programs decide takes too long.
fn script(suite: &Suite) -> String {
    let mut text = String::from(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         export PATH=/bin HOME=/root TMPDIR=/tmp SLUICE_BINARY=/bin/sluice RUST_BACKTRACE=0\n\
         export SLUICE_PACKETS=20000\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sys /sys\n\
         mount -t devtmpfs dev /dev\n\
         mount -t bpf bpf /sys/fs/bpf\n\
         ip link set lo up\n\
         dmesg -n 1\n\
         for module in /modules/*; do insmod $module || echo \"cannot load $module\"; done\n",
    );
    for tests in TESTS {
        let names = tests.of(suite).map(|name| format!(" {name}")).collect::<String>();
        text.push_str(&format!("{} --exact --include-ignored --show-output --test-threads 1{names}\n", tests.name()));
    }
    text.push_str(&format!("echo {}\npoweroff -f\n", guest::END));
    text
}

fn find(program: &str) -> Result<PathBuf> {
    let found = process::search_path().into_iter().map(|folder| folder.join(program)).find(|file| file.is_file());
    found.with_context(|| format!("`{program}` is not there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_has_built_is_found_by_its_source() {
        let said = "   Compiling tests v0.1.0\n  Executable unittests src/lib.rs (target/debug/deps/tests-1)\n  \
                    Executable stories/main.rs (target/debug/deps/stories-23)\n";
        assert_eq!(executable(said, "stories/main.rs").unwrap(), "target/debug/deps/stories-23");
        assert!(executable(said, "tests/kernel_maps.rs").is_err());
    }

    #[test]
    fn a_guest_runs_each_test_by_its_whole_name() {
        let names: Vec<_> = TESTS.iter().map(Tests::name).collect();
        assert_eq!(names, ["kernel_maps", "kernel_gate", "kernel_cookies", "kernel_adoption", "stories"]);
        let [old, _, new] = &SUITES;
        let every = TESTS.iter().flat_map(|tests| tests.names);
        let mut suites_of = every.map(|(_, name)| SUITES.iter().filter(|suite| script(suite).contains(name)).count());
        assert!(suites_of.all(|suites| suites > 0), "a test that no guest runs");
        let (old, new) = (script(old), script(new));
        assert!(
            old.contains(
                "kernel_maps --exact --include-ignored --show-output --test-threads 1 the_verifier_has_room_to_spare\n"
            ),
            "{old}"
        );
        assert!(!old.contains("the_next_agent") && new.contains("the_next_agent"), "{new}");
    }
}
