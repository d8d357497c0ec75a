//! What Sluice needs besides a Rust toolchain, and how to get it on Debian: announced first, then installed, and
//! nothing is touched that is there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::ebpf::{self, Toolchain};
use crate::process::{self, cargo};

/// A program, on the path or by its path, or another file; and its Debian package.
#[derive(Clone, Copy)]
struct Tool {
    program: &'static str,
    package: &'static str,
}

/// Programs that the end-to-end tests run.
const TESTS: &[Tool] = &[
    Tool { program: "bpftool", package: "bpftool" },
    Tool { program: "curl", package: "curl" },
    Tool { program: "ethtool", package: "ethtool" },
    // Any newer javac will do, too.
    Tool { program: "/usr/share/gocode/src/google.golang.org/grpc/version.go", package: "golang-google-grpc-dev" },
    Tool { program: "h2load", package: "nghttp2-client" },
    Tool { program: "haproxy", package: "haproxy" },
    Tool { program: "javac", package: "default-jdk-headless" },
    Tool { program: "/usr/share/java/grpc-netty.jar", package: "libgrpc-java" },
    Tool { program: "/usr/share/java/guava.jar", package: "libguava-java" },
    Tool { program: "/usr/share/java/netty-codec-http2.jar", package: "libnetty-java" },
    Tool { program: "/usr/share/java/netty-tcnative.jar", package: "libnetty-tcnative-java" },
    Tool { program: "/usr/share/java/perfmark-api.jar", package: "libperfmark-java" },
    Tool { program: "ipset", package: "ipset" },
    Tool { program: "iptables-nft-restore", package: "iptables" },
    Tool { program: "nft", package: "nftables" },
    Tool { program: "nghttpd", package: "nghttp2-server" },
    Tool { program: "nginx", package: "nginx-light" },
    Tool { program: "node", package: "nodejs" },
    Tool { program: "openssl", package: "openssl" },
    Tool { program: "wrk", package: "wrk" },
    // Debian's own Python with its packages; another one may come first on the path.
    Tool { program: "/usr/bin/python3", package: "python3" },
    Tool { program: "/usr/lib/python3/dist-packages/aiohttp/__init__.py", package: "python3-aiohttp" },
    Tool { program: "/usr/lib/python3/dist-packages/gunicorn/__init__.py", package: "python3-gunicorn" },
    Tool { program: "/usr/lib/python3/dist-packages/grpc/__init__.py", package: "python3-grpcio" },
    Tool { program: "/usr/lib/python3/dist-packages/websockets/__init__.py", package: "python3-websockets" },
];

/// Any Go will do: for Kubernetes, an old one downloads a newer one (`kube/go.rs`).
const GO: Tool = Tool { program: "go", package: "golang-go" };

/// Programs that build and run clusters of Kubernetes.
const CLUSTERS: &[Tool] = &[
    Tool { program: "containerd", package: "containerd" },
    Tool { program: "runc", package: "runc" },
    Tool { program: "/usr/lib/cni/ptp", package: "containernetworking-plugins" },
    GO,
    Tool { program: "ip", package: "iproute2" },
];

/// Debian's compiler for the kernel program, and its prebuilt core.
const BPF_PACKAGES: [&str; 2] = ["rustc-web", "libstd-rust-web-dev-bpf"];

/// Version of cargo-deny to install if there is none.
const CARGO_DENY: &str = "0.20.2";

/// The missing programs.
#[derive(Default)]
struct InstallPlan {
    packages: Vec<&'static str>,
    toolchain: bool,
    linker: bool,
}

impl InstallPlan {
    fn is_empty(&self) -> bool {
        self.packages.is_empty() && !self.toolchain && !self.linker
    }
}

/// Installs what building the kernel program needs. (A Rust compiler for the rest is installed already.)
pub fn for_run(root: &Path) -> Result<()> {
    install(root, &[])
}

/// Installs what building and testing need.
pub fn for_tests(root: &Path) -> Result<()> {
    install(root, &[TESTS, CLUSTERS].concat())
}

/// Installs what clusters of Kubernetes need.
pub fn for_clusters() -> Result<()> {
    packages(&missing(CLUSTERS))
}

/// Installs Go.
pub fn go() -> Result<()> {
    packages(&missing(&[GO]))
}

/// Installs Debian packages; without any it does nothing.
pub fn packages(packages: &[&'static str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    announce(&InstallPlan { packages: packages.to_vec(), ..InstallPlan::default() });
    ensure!(is_there("apt-get"), "this is no Debian; install the programs above with your system's package manager");
    ensure!(process::is_root(), "installing Debian packages needs root: run it again with sudo");
    apt_get(&["update"])?;
    apt_get(&[&["install", "-y", "--no-install-recommends"][..], packages].concat())
}

fn install(root: &Path, tools: &[Tool]) -> Result<()> {
    let plan = InstallPlan {
        packages: missing(tools),
        toolchain: Toolchain::find().is_err(),
        linker: !ebpf::linker_is_there(),
    };
    if plan.is_empty() {
        return Ok(());
    }
    announce(&plan);
    let apt = !plan.packages.is_empty() || plan.toolchain;
    if apt && is_there("apt-get") {
        ensure!(process::is_root(), "installing Debian packages needs root: run it again with sudo");
        apt_get(&["update"])?;
    }
    if !plan.packages.is_empty() {
        if !is_there("apt-get") {
            bail!("this is no Debian; install the programs above with your system's package manager");
        }
        let install = ["install", "-y", "--no-install-recommends"];
        apt_get(&[&install[..], &plan.packages].concat())?;
    }
    if plan.toolchain {
        toolchain()?;
    }
    if plan.linker {
        step(&format!("building bpf-linker {} (some minutes)", ebpf::BPF_LINKER));
        process::run(cargo(root).args(["install", "bpf-linker", "--version", ebpf::BPF_LINKER, "--locked"]))?;
    }
    step("everything needed is installed");
    Ok(())
}

/// Packages of the programs that are not there.
fn missing(tools: &[Tool]) -> Vec<&'static str> {
    tools.iter().filter(|tool| !is_there(tool.program)).map(|tool| tool.package).collect()
}

/// Installs the clippy of the toolchain that builds the kernel program.
pub fn for_lints() -> Result<()> {
    match Toolchain::find()? {
        Toolchain::Debian if !is_there("/usr/bin/cargo-clippy") => packages(&["rust-web-clippy"]),
        Toolchain::Nightly if !process::succeeds(Command::new("cargo").args(["+nightly", "clippy", "--version"])) => {
            let add = ["component", "add", "clippy", "--toolchain", "nightly"];
            step(&format!("rustup {}", add.join(" ")));
            process::run(Command::new("rustup").args(add))
        }
        _ => Ok(()),
    }
}

/// cargo-deny, built below `target/tools` if it is not on the path; without optimization, which takes less than half the time.
pub fn cargo_deny(root: &Path) -> Result<PathBuf> {
    let tools = process::target(root).join("tools");
    let folders = process::search_path().into_iter().chain([tools.join("bin")]);
    if let Some(found) = folders.map(|folder| folder.join("cargo-deny")).find(|program| program.is_file()) {
        return Ok(found);
    }
    step(&format!("building cargo-deny {CARGO_DENY} (some minutes)"));
    let install = ["install", "cargo-deny", "--version", CARGO_DENY, "--locked", "--debug", "--root"];
    process::run(cargo(root).args(install).arg(&tools))?;
    Ok(tools.join("bin/cargo-deny"))
}

fn announce(plan: &InstallPlan) {
    eprintln!("xtask: these are missing and will be installed:");
    for package in &plan.packages {
        eprintln!("  {package} (Debian package)");
    }
    if plan.toolchain {
        eprintln!("  {} (Debian packages), or else rust-src for the nightly toolchain", BPF_PACKAGES.join(", "));
    }
    if plan.linker {
        eprintln!("  bpf-linker {} (by cargo install)", ebpf::BPF_LINKER);
    }
}

/// A compiler for the kernel program: Debian's if its archive has a new enough one, else a nightly with `rust-src`.
fn toolchain() -> Result<()> {
    if is_there("apt-get") {
        let install = ["install", "-y", "--no-install-recommends"];
        let installed = apt_get(&[&install[..], &BPF_PACKAGES].concat());
        if installed.is_ok() && Toolchain::find().is_ok() {
            return Ok(());
        }
        eprintln!("xtask: Debian's archive has no compiler for the kernel program, taking a nightly toolchain");
    }
    let arguments = ["toolchain", "install", "nightly", "--profile", "minimal", "--component", "rust-src"];
    step(&format!("rustup {}", arguments.join(" ")));
    process::run(Command::new("rustup").args(arguments)).context(
        "neither Debian's rustc-web nor a nightly toolchain could be installed; the kernel program cannot be built",
    )?;
    Toolchain::find().map(drop)
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    step(&format!("apt-get {}", arguments.join(" ")));
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(std::process::Stdio::null());
    process::run(&mut command)
}

fn step(what: &str) {
    eprintln!("xtask: {what}");
}

/// Whether there is a program of this name, or a file at this path.
pub fn is_there(program: &str) -> bool {
    process::search_path().iter().any(|folder| folder.join(program).is_file())
}
