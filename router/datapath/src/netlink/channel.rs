//! One netlink(7) socket: requests, and their answers as bytes.

mod attributes;

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

pub use attributes::{NetlinkAttributes, list};

/// Buffer for one datagram, in bytes: the kernel's dumps have at most 32 KiB each.
pub const DATAGRAM: usize = 64 << 10;
/// Time limit for an answer. The kernel normally answers before the request's system call returns.
const PATIENCE: Duration = Duration::from_secs(1);

/// A request or an answer: its type, and the bytes after the netlink header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMessage {
    /// `nlmsg_type`.
    pub kind: u16,
    /// The bytes.
    pub payload: Vec<u8>,
}

impl NetlinkSerializable for RawMessage {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.payload.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.payload);
    }
}

impl NetlinkDeserializable for RawMessage {
    type Error = std::convert::Infallible;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, Self::Error> {
        Ok(RawMessage { kind: header.message_type, payload: payload.to_vec() })
    }
}

/// A socket to one of the kernel's families.
#[derive(Debug)]
pub struct Channel {
    socket: Socket,
    sequence: u32,
    buffer: BytesMut,
}

impl Channel {
    /// Opens a socket in this thread's network namespace.
    ///
    /// # Errors
    /// The system call's.
    pub fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Channel { socket, sequence: 0, buffer: BytesMut::with_capacity(DATAGRAM) })
    }

    /// Sends a request and passes the answers to `take`: one, or with `NLM_F_DUMP` all of the dump. A command has no
    /// answer, and requires `NLM_F_ACK`.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn ask(&mut self, question: RawMessage, flags: u16, mut take: impl FnMut(RawMessage)) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(question));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            self.buffer.clear();
            self.buffer.reserve(DATAGRAM);
            self.socket.recv(&mut self.buffer, 0)?;
            let mut rest = &self.buffer[..];
            while let Some((message, after)) = next_message(rest) {
                rest = after;
                // An answer to an earlier request that failed half-way, or a message that the library cannot parse.
                let Some(message) = message.filter(|message| message.header.sequence_number == self.sequence) else {
                    continue;
                };
                match message.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                    // With `NLM_F_ACK`: success.
                    NetlinkPayload::Error(_) => return Ok(()),
                    NetlinkPayload::InnerMessage(answer) => {
                        take(answer);
                        if flags & NLM_F_DUMP == 0 {
                            return Ok(());
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Splits the first message off a datagram; `None` in its place if it cannot be parsed.
fn next_message(bytes: &[u8]) -> Option<(Option<NetlinkMessage<RawMessage>>, &[u8])> {
    let length = u32::from_ne_bytes(bytes.first_chunk().copied()?) as usize;
    if length < 16 || length > bytes.len() {
        return None;
    }
    let after = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((NetlinkMessage::deserialize(&bytes[..length]).ok(), after))
}

/// Appends an attribute with a text.
pub fn push(payload: &mut Vec<u8>, kind: u16, text: &str) {
    let length = 4 + text.len() + 1;
    payload.extend((length as u16).to_ne_bytes());
    payload.extend(kind.to_ne_bytes());
    payload.extend(text.bytes());
    payload.resize(payload.len() + 1 + length.next_multiple_of(4) - length, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_has_no_messages() {
        assert!(next_message(&[]).is_none());
        assert!(next_message(&[1, 0, 0]).is_none());
        assert!(next_message(&[0; 64]).is_none(), "a length of nothing never ends");
        assert!(next_message(&[0xff; 64]).is_none());
    }
}
