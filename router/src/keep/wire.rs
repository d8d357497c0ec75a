//! Messages between keeper and agent: lines of text with descriptors, over one `SOCK_SEQPACKET` pair.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// Environment variable of an agent whose standard input is the keeper's socket.
pub const VARIABLE: &str = "SLUICE_KEEP";

/// To the agent: sockets that an agent opened.
pub const LISTENERS: &str = "LISTENERS=own";
/// To the agent: sockets that the keeper was started with. The agent must not close them.
pub const ACTIVATION: &str = "LISTENERS=activation";
/// To the agent: all sockets are sent, start; no other agent runs.
pub const START: &str = "START=1";
/// To the agent: like [`START`], but another agent serves until this one is ready.
pub const SUCCEED: &str = "START=successor";
/// To the agent: another agent starts; release the kernel's maps.
pub const YIELD: &str = "YIELD=1";
/// From the agent: the maps are released.
pub const YIELDED: &str = "YIELDED=1";
/// To the agent: the other agent failed; take over the maps again.
pub const RESUME: &str = "RESUME=1";
/// To the agent: the other agent is ready; drain and exit.
pub const LEAVE: &str = "LEAVE=1";
/// From the agent: everything is served.
pub const READY: &str = "READY=1";
/// From the agent: it drains, without a successor.
pub const STOPPING: &str = "STOPPING=1";
/// From the agent: store the descriptor under the name that follows.
pub const STORE: &str = "FDSTORE=1";
/// From the agent: drop the stored descriptor with the name that follows.
pub const REMOVE: &str = "FDSTOREREMOVE=1";
/// Name of a descriptor.
pub const NAME: &str = "FDNAME=";
/// From the agent: its progress, or why it ends.
pub const STATUS: &str = "STATUS=";

/// Maximum number of descriptors in one message; the kernel's limit is 253.
pub const MOST_DESCRIPTORS: usize = 64;
const MOST_BYTES: usize = 4096;

/// A received message.
#[derive(Debug)]
pub struct KeeperMessage {
    /// Its lines.
    pub text: String,
    /// Descriptors received with it.
    pub descriptors: Vec<OwnedFd>,
}

impl KeeperMessage {
    /// True if it contains this line.
    pub fn says(&self, line: &str) -> bool {
        self.text.lines().any(|found| found == line)
    }

    /// The rest of the line with a prefix such as [`NAME`].
    pub fn value(&self, prefix: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix(prefix))
    }
}

/// A connected pair of sockets.
///
/// # Errors
/// Error of the system call.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a message atomically. Text beyond 4 KiB is truncated.
///
/// # Errors
/// Error of the system call: `WouldBlock` on a non-blocking socket with a full queue.
pub fn send(socket: &impl AsFd, text: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = descriptors.len() <= MOST_DESCRIPTORS;
    let pushed = descriptors.is_empty() || fits && control.push(SendAncillaryMessage::ScmRights(descriptors));
    if !pushed {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one message"));
    }
    let bytes = text.as_bytes();
    let bytes = bytes.get(..MOST_BYTES).unwrap_or(bytes);
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message; `None` if the peer has closed the socket.
///
/// # Errors
/// Error of the system call: `WouldBlock` on a non-blocking socket without a message.
pub fn receive(socket: &impl AsFd) -> io::Result<Option<KeeperMessage>> {
    let mut bytes = [0; MOST_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
        Ok(received) => received.bytes,
        Err(rustix::io::Errno::CONNRESET) => 0,
        Err(error) => return Err(error.into()),
    };
    // No message is empty, so this is the end of the stream.
    if received == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let text = String::from_utf8_lossy(bytes.get(..received).unwrap_or_default()).into_owned();
    Ok(Some(KeeperMessage { text, descriptors }))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn descriptors_arrive_as_the_same_sockets_and_the_end_is_seen() {
        let (here, there) = pair().unwrap();
        let sockets: Vec<_> = (0..MOST_DESCRIPTORS).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let descriptors: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
        send(&here, &format!("{STORE}\n{NAME}some"), &descriptors).unwrap();
        send(&here, "SOMETHING=new", &[]).unwrap();
        let message = receive(&there).unwrap().unwrap();
        assert!(message.says(STORE) && !message.says(REMOVE));
        assert_eq!(message.value(NAME), Some("some"));
        let addresses = message.descriptors.into_iter().map(|fd| TcpListener::from(fd).local_addr().unwrap());
        assert!(addresses.eq(sockets.iter().map(|socket| socket.local_addr().unwrap())));
        assert_eq!(receive(&there).unwrap().unwrap().text, "SOMETHING=new");
        drop(here);
        assert!(receive(&there).unwrap().is_none());
        assert_eq!(send(&there, READY, &[]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn more_descriptors_than_fit_are_refused_and_long_text_is_cut() {
        let (here, there) = pair().unwrap();
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let error = send(&here, STORE, &[socket.as_fd(); MOST_DESCRIPTORS + 1]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        send(&here, &"x".repeat(2 * MOST_BYTES), &[]).unwrap();
        assert_eq!(receive(&there).unwrap().unwrap().text.len(), MOST_BYTES);
    }
}
