//! Network namespaces: machines of a test, connected by veth links. They are removed when the value is dropped.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{panic, process, thread};

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::command;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A network namespace of the test, with loopback up.
#[derive(Clone)]
pub struct Netns(Arc<Inner>);

struct Inner {
    name: String,
    file: File,
}

impl Netns {
    /// A new namespace. `role` is part of its name, for debugging.
    ///
    /// # Errors
    /// When this process is not root, or the kernel refuses.
    pub fn new(role: &str) -> Result<Netns> {
        ensure!(
            rustix::process::geteuid().is_root(),
            "this test makes network namespaces: run `sudo --preserve-env=PATH,HOME cargo xtask test`"
        );
        let name = format!("sluice-{}-{}-{role}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        ip(Command::new("ip").args(["netns", "add", &name]))?;
        let path = Path::new("/run/netns").join(&name);
        let file = File::open(&path).with_context(|| format!("opening {}", path.display()))?;
        let netns = Netns(Arc::new(Inner { name, file }));
        netns.ip(&["link", "set", "lo", "up"])?;
        Ok(netns)
    }

    /// Its name, as `ip netns` prints it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Creates a veth link to another namespace. Each end has the name of an interface (at most 15 bytes) and addresses
    /// with prefix lengths.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn link(&self, here: (&str, &[&str]), other: &Netns, there: (&str, &[&str])) -> Result<()> {
        let peer = ["type", "veth", "peer", "name", there.0, "netns", other.name()];
        self.ip(&[&["link", "add", here.0][..], &peer].concat())?;
        self.equip(here.0, here.1)?;
        other.equip(there.0, there.1)
    }

    /// Adds addresses with prefix lengths to an interface, and brings it up.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn equip(&self, interface: &str, addresses: &[&str]) -> Result<()> {
        for address in addresses {
            // Without duplicate address detection, an IPv6 address is usable at once.
            let options: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
            self.ip(&[&["address", "add", address, "dev", interface][..], options].concat())?;
        }
        self.ip(&["link", "set", interface, "up"])
    }

    /// A command to run inside. Unlike `ip netns exec`, it keeps the mounts, among them the BPF file system.
    ///
    /// # Errors
    /// When the namespace cannot be handed on.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Result<Command> {
        let file = self.0.file.try_clone()?;
        let mut command = Command::new(program);
        let enter = move || Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?);
        // SAFETY: between fork and exec the closure makes one system call, which is async-signal-safe, and allocates
        // nothing.
        unsafe { command.pre_exec(enter) };
        Ok(command)
    }

    /// Runs `ip` inside.
    ///
    /// # Errors
    /// When it fails; the error has its output.
    pub fn ip(&self, arguments: &[&str]) -> Result<()> {
        ip(self.command("ip")?.args(arguments))
    }

    /// Runs a program inside with a text as its input, such as `nft -f -`.
    ///
    /// # Errors
    /// When it fails; the error has its output.
    pub fn feed(&self, program: &[&str], text: &str) -> Result<()> {
        let [program, arguments @ ..] = program else { bail!("no program") };
        command::fed(self.command(program)?.args(arguments), text).map(drop).with_context(|| text.to_owned())
    }

    /// Writes a network setting of this namespace: a path below `/proc/sys/net`, such as `ipv4/tcp_sack`.
    ///
    /// # Errors
    /// When there is no such setting, or the kernel refuses the value.
    pub fn set(&self, setting: &str, value: &str) -> Result<()> {
        let file = Path::new("/proc/sys/net").join(setting);
        self.run(|| fs::write(&file, value).with_context(|| format!("writing {value:?} to {}", file.display())))
    }

    /// Reads a network setting; see [`Netns::set`].
    ///
    /// # Errors
    /// When there is no such setting.
    pub fn setting(&self, setting: &str) -> Result<String> {
        let file = Path::new("/proc/sys/net").join(setting);
        let text = self.run(|| fs::read_to_string(&file).with_context(|| format!("reading {}", file.display())))?;
        Ok(text.trim().to_owned())
    }

    /// Disables offloads, so that an interface sends packets as on a wire: not longer than the MTU, with checksums.
    ///
    /// # Errors
    /// When `ethtool` fails.
    pub fn without_offloads(&self, interface: &str) -> Result<()> {
        let off = ["tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off"];
        command::output(self.command("ethtool")?.args(["-K", interface]).args(off)).map(drop)
    }

    /// The hardware address of an interface.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn hardware_address(&self, interface: &str) -> Result<[u8; 6]> {
        let output = command::output(self.command("ip")?.args(["-json", "link", "show", "dev", interface]))?;
        let links: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let text = links[0]["address"].as_str().context("a link has an address")?;
        let bytes: Vec<u8> = text.split(':').map(|part| u8::from_str_radix(part, 16)).collect::<Result<_, _>>()?;
        bytes.try_into().ok().with_context(|| format!("{text} is no Ethernet address"))
    }

    /// Runs a function inside. Its sockets stay in the namespace wherever they are used.
    ///
    /// # Errors
    /// When the namespace cannot be entered, and those of the function.
    pub fn run<T: Send>(&self, function: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                // A thread has its own namespace: this thread ends here, so nothing else is affected.
                move_into_link_name_space(self.0.file.as_fd(), Some(LinkNameSpaceType::Network))?;
                function()
            });
            inside.join().unwrap_or_else(|payload| panic::resume_unwind(payload))
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Err(error) = ip(Command::new("ip").args(["netns", "delete", &self.name])) {
            eprintln!("leaving a network namespace behind: {error:#}");
        }
    }
}

fn ip(command: &mut Command) -> Result<()> {
    let output = command.output().context("`ip` cannot be run (Debian package iproute2)")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}", said.trim());
    Ok(())
}
