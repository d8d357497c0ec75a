//! Options of sockets that no library has.

use std::io;
use std::os::fd::AsRawFd;

use anyhow::{Result, ensure};

/// Sets an IP option on a socket (ip(7), ipv6(7)).
///
/// # Errors
/// When the kernel does not take it.
pub fn set_option(socket: &impl AsRawFd, level: i32, name: i32, value: &[u8]) -> Result<()> {
    let length = libc::socklen_t::try_from(value.len())?;
    // SAFETY: the value has that many bytes, and the kernel only reads them.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), length) };
    ensure!(done == 0, "option {name} of {level}: {}", io::Error::last_os_error());
    Ok(())
}
