//! Generic netlink (linux/genetlink.h): questions to a family of messages, which has a name.

use std::io;

use netlink_packet_core::{NlaBuffer, NlasIterator};
use netlink_sys::protocols::NETLINK_GENERIC;

use crate::netlink::channel::{Channel, RawMessage};

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// Length of `struct genlmsghdr`: command, version, reserved.
const GENLMSG: usize = 4;

/// A socket, and a family's id.
#[derive(Debug)]
pub struct Family {
    channel: Channel,
    id: u16,
}

impl Family {
    /// Opens a socket in this thread's network namespace.
    ///
    /// # Errors
    /// The system call's, or that the kernel lacks the family.
    pub fn open(name: &str) -> io::Result<Self> {
        let mut control = Family { channel: Channel::open(NETLINK_GENERIC)?, id: GENL_ID_CTRL };
        let mut found = None;
        let name = attribute(CTRL_ATTR_FAMILY_NAME, format!("{name}\0").as_bytes());
        control.ask(CTRL_CMD_GETFAMILY, &name, |attributes| {
            let id = find(attributes, CTRL_ATTR_FAMILY_ID);
            found = id.and_then(|id| Some(u16::from_ne_bytes(id.first_chunk().copied()?)));
        })?;
        let id = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Family { id, ..control })
    }

    /// Sends a command with its attributes, and passes the attributes of the answer to the callback.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn ask(&mut self, command: u8, attributes: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let question = RawMessage { kind: self.id, payload: message(command, attributes) };
        self.channel.ask(question, 0, |answer| take(answer.payload.get(GENLMSG..).unwrap_or_default()))
    }
}

fn message(command: u8, attributes: &[u8]) -> Vec<u8> {
    const VERSION: u8 = 1;
    [&[command, VERSION, 0, 0], attributes].concat()
}

/// The encoding of an attribute: length, type, value, padding to four bytes.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    const HEADER: usize = 4;
    let length = HEADER + value.len();
    let mut bytes = Vec::with_capacity(length.next_multiple_of(4));
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// The value of the first attribute of a type.
pub fn find(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    values(attributes).find_map(|(found, value)| (found == kind).then_some(value))
}

/// Types and values of attributes.
pub fn values(attributes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(attributes).map_while(Result::ok).map(|found: NlaBuffer<&[u8]>| {
        let (kind, length) = (found.kind(), found.value_length());
        let bytes = found.into_inner();
        (kind, &bytes[4..4 + length])
    })
}
