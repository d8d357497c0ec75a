//! Socket options that socket2 and rustix lack.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Sets `TCP_DEFER_ACCEPT` (tcp(7)) on a listening socket: the kernel delivers a connection only when its first data
/// has arrived, or after about this time, in whole seconds; 0 disables that.
///
/// # Errors
/// The system call failed.
pub fn defer_accept(socket: &impl AsFd, time: Duration) -> io::Result<()> {
    let seconds = libc::c_int::try_from(time.as_secs()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the option takes a c_int, as pointer and length describe, and the call does not retain the pointer; the
    // descriptor is open as long as `socket` is borrowed.
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

/// Cookie of this thread's network namespace (`SO_NETNS_COOKIE`, Linux 5.14).
///
/// # Errors
/// A system call failed.
pub fn network_cookie() -> io::Result<u64> {
    let socket = std::os::unix::net::UnixDatagram::unbound()?;
    let (mut cookie, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `length` bytes, the size of the number, which lives until the call returns.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

/// A `getsockopt` query about tables of `iptables-legacy` (linux/netfilter_ipv4/ip_tables.h, …_ipv6/ip6_tables.h, which
/// use the same numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xtables {
    /// `IPT_SO_GET_INFO`.
    Info = 64,
    /// `IPT_SO_GET_ENTRIES`.
    Entries = 65,
}

/// Queries a table; the buffer contains the query, and after the call the reply.
///
/// # Errors
/// The system call failed.
pub fn xtables(socket: &impl AsFd, v6: bool, question: Xtables, buffer: &mut [u8]) -> io::Result<()> {
    let level = if v6 { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP };
    let mut length = libc::socklen_t::try_from(buffer.len()).map_err(io::Error::other)?;
    // SAFETY: the kernel reads and writes at most `length` bytes, the size of the buffer, which lives until the call
    // returns. Neither query contains pointers.
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
