//! Ethernet frames of an interface as they are on the wire, for `wire` and `raw`.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{RecvFlags, recv};
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};

use crate::netns::Netns;

/// Maximum size of a frame: a jumbo frame's MTU and its header. These links have no offloads.
pub const LONGEST: usize = 9014;

/// Every protocol (`ETH_P_ALL`), in network order as `packet(7)` takes it.
const EVERYTHING: u16 = (libc::ETH_P_ALL as u16).to_be();

/// An interface, sending and receiving whole frames (`packet(7)`).
pub struct Frames(Socket);

impl Frames {
    /// Opens an interface of a namespace. Frames sent here are not received here.
    ///
    /// # Errors
    /// When there is no such interface, or the kernel refuses.
    pub fn open(netns: &Netns, interface: &str) -> Result<Frames> {
        netns.run(|| {
            let any = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
            let index = name_to_index(&any, interface).with_context(|| format!("the interface {interface}"))?;
            // A socket with protocol 0 receives nothing until it is bound to the interface.
            let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))?;
            socket.bind(&address(index)?)?;
            socket.set_recv_buffer_size(8 << 20)?;
            Ok(Frames(socket))
        })
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// When it is longer than the interface takes, or the interface is down.
    pub fn send(&self, frame: &[u8]) -> Result<()> {
        (&self.0).write_all(frame).with_context(|| format!("sending a frame of {} bytes", frame.len()))
    }

    /// The next frame; `None` if none arrives in time.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn receive<'b>(&self, buffer: &'b mut [u8; LONGEST], within: Duration) -> Result<Option<&'b [u8]>> {
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&Timespec::try_from(within)?))?;
        self.take(buffer)
    }

    /// A frame that has already arrived.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn take<'b>(&self, buffer: &'b mut [u8; LONGEST]) -> Result<Option<&'b [u8]>> {
        match recv(&self.0, buffer.as_mut_slice(), RecvFlags::DONTWAIT) {
            Ok((_, length)) => Ok(buffer.get(..length)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error).context("receiving a frame"),
        }
    }

    /// The socket, for polling.
    pub(crate) fn socket(&self) -> &Socket {
        &self.0
    }
}

/// `sockaddr_ll` of an interface, for every protocol.
fn address(index: u32) -> Result<SockAddr> {
    let mut storage = SockAddrStorage::zeroed();
    let link = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: EVERYTHING,
        sll_ifindex: i32::try_from(index)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = libc::socklen_t::try_from(size_of_val(&link))?;
    // SAFETY: `sockaddr_ll` is one of the platform's address types; an address of this family and size is written.
    Ok(unsafe {
        *storage.view_as::<libc::sockaddr_ll>() = link;
        SockAddr::new(storage, length)
    })
}
