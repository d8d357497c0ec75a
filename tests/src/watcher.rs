//! Observers of an interface's packets: programs with BPF links and chains of nftables, attached until the value is
//! dropped. They accept every packet.

use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use anyhow::{Context, Result, ensure};
use socket2::{Domain, Protocol, Socket, Type};

/// Attachment point of a program (linux/bpf.h: program type, attach type, and the verdict that passes packets).
#[derive(Clone, Copy, Debug)]
pub enum Hook {
    /// Outgoing packets of an interface (`BPF_TCX_EGRESS`).
    TcxEgress,
    /// Incoming packets in the driver (`BPF_XDP`).
    Xdp,
}

impl Hook {
    fn codes(self) -> (u32, u32, i32) {
        const TCX_NEXT: i32 = -1;
        const XDP_PASS: i32 = 2;
        match self {
            Hook::TcxEgress => (3, 47, TCX_NEXT),
            Hook::Xdp => (6, 37, XDP_PASS),
        }
    }
}

/// Attaches a program to an interface of this thread's network namespace. Closing the link's descriptor detaches it.
///
/// # Errors
/// When the kernel refuses.
pub fn attach(hook: Hook, interface: u32) -> Result<OwnedFd> {
    const PROG_LOAD: i64 = 5;
    const LINK_CREATE: i64 = 28;
    let (kind, place, verdict) = hook.codes();
    // BPF_ALU64 | BPF_MOV | BPF_K to register 0, BPF_EXIT.
    let instructions = [0xb7 | u64::from(verdict as u32) << 32, 0x95];
    let license = c"GPL";
    let mut load = [0_u64; 16];
    load[0] = u64::from(kind) | 2 << 32;
    load[1] = instructions.as_ptr() as u64;
    load[2] = license.as_ptr() as u64;
    let program = bpf(PROG_LOAD, &load).context("loading a program")?;
    let mut link = [0_u64; 16];
    link[0] = program.as_raw_fd() as u64 | u64::from(interface) << 32;
    link[1] = u64::from(place);
    bpf(LINK_CREATE, &link).context("attaching a program")
}

fn bpf(command: i64, attributes: &[u64; 16]) -> Result<OwnedFd> {
    // SAFETY: `union bpf_attr` of that size; its pointers are valid until the call returns.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size_of_val(attributes)) };
    ensure!(fd >= 0, std::io::Error::last_os_error());
    // SAFETY: these commands return a new descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(i32::try_from(fd)?) })
}

/// Creates an nftables table with an empty chain for outgoing packets of an interface (`netdev` family, `egress` hook),
/// in this thread's network namespace. Closing the socket removes the table.
///
/// # Errors
/// When the kernel refuses.
pub fn chain(interface: &str) -> Result<Socket> {
    const BATCH: u16 = 0x10;
    const NEW_TABLE: u16 = 10 << 8;
    const NEW_CHAIN: u16 = 10 << 8 | 3;
    const REQUEST: u16 = 1;
    const ACK: u16 = 4;
    const CREATE: u16 = 0x400;
    const NETDEV: u8 = 5;
    const NESTED: u16 = 1 << 15;
    const OF_ITS_SOCKET: [u8; 4] = 2_u32.to_be_bytes();
    const EGRESS: [u8; 4] = 1_u32.to_be_bytes();
    let table = [attribute(1, b"watcher\0"), attribute(2, &OF_ITS_SOCKET)].concat();
    let device = [interface.as_bytes(), &[0]].concat();
    let hook = [attribute(1, &EGRESS), attribute(2, &[0; 4]), attribute(3, &device)].concat();
    let chain =
        [attribute(1, b"watcher\0"), attribute(3, b"all\0"), attribute(4 | NESTED, &hook), attribute(7, b"filter\0")]
            .concat();
    let batch = [
        message(BATCH, REQUEST, 0, &[]),
        message(NEW_TABLE, REQUEST | CREATE, NETDEV, &table),
        message(NEW_CHAIN, REQUEST | CREATE | ACK, NETDEV, &chain),
        message(BATCH + 1, REQUEST, 0, &[]),
    ]
    .concat();
    let protocol = Protocol::from(libc::NETLINK_NETFILTER);
    let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(protocol))?;
    socket.send(&batch)?;
    let mut answer = [0; 512];
    let length = (&socket).read(&mut answer)?;
    // NLMSG_ERROR: its first number is an errno, or 0 for success.
    let error = answer.get(16..20).and_then(|error| error.try_into().ok()).map(i32::from_ne_bytes);
    ensure!(length >= 20 && error == Some(0), "nftables answers {error:?}");
    Ok(socket)
}

fn message(kind: u16, flags: u16, family: u8, attributes: &[u8]) -> Vec<u8> {
    let length = (20 + attributes.len()) as u32;
    let header = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8]].concat();
    // `struct nfgenmsg`: the subsystem, for a batch.
    [&header, &[family, 0, 0, 10][..], attributes].concat()
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = [&(length as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}
