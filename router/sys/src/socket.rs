//! Socket options that neither socket2 nor rustix has.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Leaves connections of a listening socket to the kernel until their first bytes are there, for a time in whole seconds
/// at most (`TCP_DEFER_ACCEPT`, tcp(7)); 0 turns that off.
///
/// # Errors
/// The system call's.
pub fn defer_accept(socket: &impl AsFd, time: Duration) -> io::Result<()> {
    let seconds = libc::c_int::try_from(time.as_secs()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the option takes a c_int, which is what the pointer and the length describe, and the call does not keep the
    // pointer; the descriptor is open as long as `socket` is borrowed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A question about tables of `iptables-legacy` (linux/netfilter_ipv4/ip_tables.h, …_ipv6/ip6_tables.h: the numbers are the
/// same).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xtables {
    /// `IPT_SO_GET_INFO`.
    Info = 64,
    /// `IPT_SO_GET_ENTRIES`.
    Entries = 65,
}

/// Asks about a table; the buffer holds the question, and then the answer.
///
/// # Errors
/// The system call's.
pub fn xtables(socket: &impl AsFd, v6: bool, question: Xtables, buffer: &mut [u8]) -> io::Result<()> {
    let level = if v6 { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP };
    let mut length = libc::socklen_t::try_from(buffer.len()).map_err(io::Error::other)?;
    // SAFETY: the kernel reads and writes at most `length` bytes, which is how many the buffer has, and it lives until the
    // call returns. Neither question holds pointers.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            question as libc::c_int,
            buffer.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
