//! Who reads the Host field of a head, and when.

use crate::hostname::{HostBuilder, HostError, HostKind};

/// Who gets the bytes of the Host field.
pub trait HostReader {
    /// Whether they are read at all. If not, they are held to be a host as long as they are visible.
    const READS: bool;

    /// Takes the next byte.
    ///
    /// # Errors
    /// When it cannot be part of a host and port.
    fn push_authority(&mut self, byte: u8) -> Result<(), HostError>;

    /// The field has ended.
    ///
    /// # Errors
    /// When that was no host.
    fn finish(&mut self) -> Result<HostKind, HostError>;
}

impl HostReader for HostBuilder {
    const READS: bool = true;

    #[inline(always)]
    fn push_authority(&mut self, byte: u8) -> Result<(), HostError> {
        HostBuilder::push_authority(self, byte)
    }

    #[inline(always)]
    fn finish(&mut self) -> Result<HostKind, HostError> {
        HostBuilder::finish(self)
    }
}

/// For whoever reads the Host field later: says of all that is visible that it is a name.
#[derive(Clone, Copy, Debug)]
pub struct UnreadHost;

impl HostReader for UnreadHost {
    const READS: bool = false;

    #[inline(always)]
    fn push_authority(&mut self, byte: u8) -> Result<(), HostError> {
        if byte > b' ' && byte < 0x7f { Ok(()) } else { Err(HostError::BadByte) }
    }

    #[inline(always)]
    fn finish(&mut self) -> Result<HostKind, HostError> {
        Ok(HostKind::Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_host_that_is_read_later_every_visible_byte_may_be_part() {
        for byte in 0..=u8::MAX {
            assert_eq!(UnreadHost.push_authority(byte).is_ok(), byte.is_ascii_graphic(), "{byte}");
        }
    }
}
