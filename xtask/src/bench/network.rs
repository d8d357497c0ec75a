//! The machines: one client, one backend, and a router of its own for each way, in network namespaces.
//!
//! ```text
//! client 10.77.w.2-4 ── 10.77.w.1 router w 10.78.w.1 ── 10.78.w.2-4 backend
//! ```

use std::ffi::CString;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use serde_json::Value;

/// Addresses of the client, and of the backend, on each link: more connections than one address has ports.
pub const HOSTS: [u8; 3] = [2, 3, 4];
/// Where backends listen.
pub const BACKEND_PORT: u16 = 9443;
/// Where routers listen.
pub const ROUTER_PORT: u16 = 8443;
/// The same for clear text.
pub const CLEAR_PORT: u16 = 8080;
/// Descriptors that every process gets. A relay needs two for each connection.
pub const DESCRIPTORS: u64 = 20_000;

/// Congestion control of all routes. A host's default may be BBR, with which one response of 64 KiB in 200 pauses for
/// 20–100 ms behind every router. Routes name it because cubic as a sysctl is refused to namespaces where it is not the
/// host's default (`TCP_CONG_NON_RESTRICTED`).
pub const CONGESTION_CONTROL: &str = "congctl cubic";

/// Of namespaces' names; the process id of the run follows.
const PREFIX: &str = "sluice-bench-";

/// A network namespace, deleted when dropped.
pub struct Netns {
    name: String,
    file: File,
}

impl Netns {
    /// A namespace with a loopback interface; its name tells the process and the role.
    pub fn new(role: &str) -> Result<Netns> {
        let name = format!("{PREFIX}{}-{role}", std::process::id());
        ip(Command::new("ip").args(["netns", "add", &name]))?;
        let path = Path::new("/run/netns").join(&name);
        let file = File::open(&path).with_context(|| format!("opening {}", path.display()))?;
        let netns = Netns { name, file };
        netns.ip("link set lo up")?;
        Ok(netns)
    }

    /// A command that will run inside, with [`DESCRIPTORS`]. Unlike `ip netns exec` it keeps the mounts, among them the
    /// BPF file system.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Result<Command> {
        let file = self.file.try_clone()?;
        let mut command = Command::new(program);
        let prepare = move || {
            let most = getrlimit(Resource::Nofile).maximum.map_or(DESCRIPTORS, |most| most.min(DESCRIPTORS));
            setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: Some(most) })?;
            Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
        };
        // SAFETY: between fork and exec the closure makes three system calls, which are async-signal-safe, and
        // allocates nothing.
        unsafe { command.pre_exec(prepare) };
        Ok(command)
    }

    /// The same with another /etc/hosts, for programs that connect where names lead.
    pub fn command_with_hosts(&self, program: impl AsRef<std::ffi::OsStr>, hosts: &Path) -> Result<Command> {
        let mut command = self.command(program)?;
        let hosts = CString::new(hosts.as_os_str().as_bytes())?;
        let prepare = move || {
            // SAFETY: mounts are a process's own from here on; descriptors and the working folder stay shared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
            // Mounts made here must not be visible outside.
            mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            Ok(mount_bind(hosts.as_c_str(), c"/etc/hosts")?)
        };
        // SAFETY: between fork and exec the closure makes three system calls, which are async-signal-safe, with
        // strings that are C's already, and allocates nothing.
        unsafe { command.pre_exec(prepare) };
        Ok(command)
    }

    /// Runs a function inside.
    pub fn run<T: Send>(&self, function: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                // A namespace is a thread's: this thread ends here, so nothing else is moved.
                move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?;
                function()
            });
            inside.join().map_err(|_| anyhow!("a function in namespace {} panicked", self.name))?
        })
    }

    /// Runs a script of the shell inside, with the namespace's own `/sys`.
    pub fn shell(&self, script: &str) -> Result<()> {
        ip(Command::new("ip").args(["netns", "exec", &self.name, "sh", "-ec", script]))
    }

    /// Number and address of one of its interfaces.
    pub fn interface(&self, name: &str) -> Result<(u32, String)> {
        let output = self.command("ip")?.args(["-json", "link", "show", "dev", name]).output()?;
        let links: Value = serde_json::from_slice(&output.stdout).with_context(|| format!("there is no {name}"))?;
        let number = links[0]["ifindex"].as_u64().context("an interface has a number")?;
        Ok((number.try_into()?, links[0]["address"].as_str().context("an interface has an address")?.to_owned()))
    }

    /// Runs `ip` on it.
    pub fn ip(&self, arguments: &str) -> Result<()> {
        ip(self.command("ip")?.args(arguments.split(' ')))
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if let Err(error) = ip(Command::new("ip").args(["netns", "delete", &self.name])) {
            eprintln!("xtask: a network namespace is left behind: {error:#}");
        }
    }
}

fn ip(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().context("`ip` cannot be run (Debian package iproute2)")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}", said.trim());
    Ok(())
}

/// The client and the backend.
pub struct Network {
    /// Where clients run.
    pub client: Netns,
    /// Where backends run.
    pub backend: Netns,
}

/// The machine in between on one way.
pub struct Middle {
    /// Its namespace.
    pub netns: Netns,
    number: u8,
}

/// Deletes what runs left that were killed.
fn clean_up() {
    let Ok(entries) = fs::read_dir("/run/netns") else { return };
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists()) {
            // Whatever holds it back, the names of this run are others.
            let _ = ip(Command::new("ip").args(["netns", "delete", &name]));
        }
    }
}

impl Network {
    /// Both, unconnected.
    pub fn new() -> Result<Network> {
        clean_up();
        Ok(Network { client: Netns::new("client")?, backend: Netns::new("backend")? })
    }

    /// A machine between them that forwards. Its number is its own.
    pub fn middle(&self, number: u8) -> Result<Middle> {
        let netns = Netns::new(&format!("router-{number}"))?;
        for (end, side, interface) in [(&self.client, 77, "client"), (&self.backend, 78, "backend")] {
            let there = far_end(number);
            netns.ip(&format!("link add {interface} type veth peer name {there} netns {}", end.name))?;
            netns.ip(&format!("address add 10.{side}.{number}.1/24 dev {interface}"))?;
            netns.ip(&format!("link set {interface} up"))?;
            let subnet = format!("10.{side}.{number}.0/24");
            netns
                .ip(&format!("route replace {subnet} dev {interface} src 10.{side}.{number}.1 {CONGESTION_CONTROL}"))?;
            for host in HOSTS {
                end.ip(&format!("address add 10.{side}.{number}.{host}/24 dev {there}"))?;
            }
            end.ip(&format!("link set {there} up"))?;
            let first = HOSTS[0];
            end.ip(&format!("route replace {subnet} dev {there} src 10.{side}.{number}.{first} {CONGESTION_CONTROL}"))?;
            let other = 77 + 78 - side;
            end.ip(&format!("route add 10.{other}.{number}.0/24 via 10.{side}.{number}.1 {CONGESTION_CONTROL}"))?;
        }
        // These files belong to the network namespace of the process that opens them.
        netns.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("switching forwarding on"))?;
        Ok(Middle { netns, number })
    }
}

/// The client's, or the backend's, end of its link to a machine between them.
fn far_end(number: u8) -> String {
    format!("router{number}")
}

impl Middle {
    /// Its own, in addresses and interfaces' names.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Where clients reach the router.
    pub fn listener(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 77, self.number, 1), ROUTER_PORT)
    }

    /// The client's interface to it.
    pub fn clients_interface(&self) -> String {
        far_end(self.number)
    }

    /// The client's addresses.
    pub fn clients(&self) -> [Ipv4Addr; HOSTS.len()] {
        HOSTS.map(|host| Ipv4Addr::new(10, 77, self.number, host))
    }

    /// The endpoints.
    pub fn endpoints(&self) -> [SocketAddrV4; HOSTS.len()] {
        HOSTS.map(|host| SocketAddrV4::new(Ipv4Addr::new(10, 78, self.number, host), BACKEND_PORT))
    }
}
