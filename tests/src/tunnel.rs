//! Links between interfaces without Ethernet headers (tun), like those of WireGuard and IPIP: packets pass through user
//! space.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, ensure};

use crate::netns::Netns;

/// Maximum size of a packet, in bytes: more than the interfaces' MTU.
const LONGEST: usize = 2048;
/// `TUNSETIFF` (linux/if_tun.h): creates an interface.
const SET_INTERFACE: libc::Ioctl = 0x4004_54ca;

/// A link. It is removed when the value is dropped.
pub struct Tunnel {
    ends: [(Netns, String); 2],
    threads: Vec<JoinHandle<()>>,
}

impl Tunnel {
    /// Creates a link between two namespaces, as [`Netns::link`] does.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn lay(here: (&Netns, &str, &[&str]), there: (&Netns, &str, &[&str])) -> Result<Tunnel> {
        let open = |(netns, interface, addresses): (&Netns, &str, &[&str])| {
            let file = netns.run(|| open(interface))?;
            netns.equip(interface, addresses)?;
            Ok::<_, anyhow::Error>(file)
        };
        let (left, right) = (open(here)?, open(there)?);
        let mut threads = Vec::new();
        for (from, to) in [(&left, &right), (&right, &left)] {
            let (from, to) = (from.try_clone()?, to.try_clone()?);
            threads.push(thread::Builder::new().name("tunnel".to_owned()).spawn(move || carry(&from, &to))?);
        }
        let end = |(netns, interface, _): (&Netns, &str, _)| (netns.clone(), interface.to_owned());
        Ok(Tunnel { ends: [end(here), end(there)], threads })
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        for (netns, interface) in &self.ends {
            // A reader of a removed interface gets an error.
            if let Err(error) = netns.ip(&["link", "delete", interface]) {
                eprintln!("leaving a tunnel behind: {error:#}");
                return;
            }
        }
        for thread in self.threads.drain(..) {
            // The panic was printed.
            let _ = thread.join();
        }
    }
}

/// Forwards packets in one direction until an interface is removed. Packets that the other interface does not accept
/// are lost, as on any link.
fn carry(mut from: &File, mut to: &File) {
    let mut packet = [0; LONGEST];
    while let Ok(length) = from.read(&mut packet) {
        let _ = to.write(&packet[..length]);
    }
}

/// Creates an interface in this thread's network namespace. It exists as long as the file is open; its packets are read
/// and written through the file.
fn open(interface: &str) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun").context("/dev/net/tun")?;
    // `struct ifreq`: a name, and flags.
    let mut request = [0_u8; 40];
    ensure!(interface.len() < 16, "{interface} is too long a name");
    request[..interface.len()].copy_from_slice(interface.as_bytes());
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as u16;
    request[16..18].copy_from_slice(&flags.to_ne_bytes());
    // SAFETY: the request reads and writes one `struct ifreq`, which has this size.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), SET_INTERFACE, request.as_mut_ptr()) };
    ensure!(done == 0, "the interface {interface}: {}", std::io::Error::last_os_error());
    Ok(file)
}
