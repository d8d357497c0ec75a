//! Readers of a head's Host field.

use crate::hostname::{HostBuilder, HostError, HostKind};

/// Receives the bytes of the Host field.
pub trait HostReader {
    /// Whether the host is parsed. If not, any visible bytes are accepted.
    const READS: bool;

    /// Receives the next byte.
    ///
    /// # Errors
    /// The byte cannot be part of a host and port.
    fn push_authority(&mut self, byte: u8) -> Result<(), HostError>;

    /// Ends the field.
    ///
    /// # Errors
    /// The field is not a valid host.
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

/// Accepts any visible bytes as a name, for callers that parse the Host field later.
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
