//! Networks in LPM tries.

use super::key::is_mapped;

/// Data of an LPM key: a network in the scope of a route (`allowlists`) or of a list (`gate_nets`). The prefix length before
/// it is [`SCOPE_BITS`] plus up to 128 bits of the address (IPv4 `/n` is `96 + n`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct ScopedNet {
    /// Id of the scope and, in the lowest bit, whether the address is IPv4: `::/0` has no IPv4 address. Big-endian, because
    /// LPM tries compare from the first byte.
    scope: [u8; 4],
    /// Network address.
    pub address: [u8; 16],
}

impl ScopedNet {
    /// A network, or an address to look up, in a scope.
    #[inline(always)]
    pub const fn of(scope: u32, address: [u8; 16]) -> Self {
        ScopedNet { scope: (scope << 1 | is_mapped(&address) as u32).to_be_bytes(), address }
    }

    /// Id of the scope.
    pub const fn scope(&self) -> u32 {
        u32::from_be_bytes(self.scope) >> 1
    }
}

/// Bits of a [`ScopedNet`] before the address.
pub const SCOPE_BITS: u32 = 32;

const _: () = assert!(size_of::<ScopedNet>() == 4 + 16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::mapped;

    #[test]
    fn networks_of_one_family_have_no_address_of_the_other() {
        let (v4, v6, all) =
            (ScopedNet::of(5, mapped([192, 0, 2, 7])), ScopedNet::of(5, [0x20; 16]), ScopedNet::of(5, [0; 16]));
        assert_eq!((v4.scope(), v6.scope(), all.scope()), (5, 5, 5));
        assert_eq!((v4.scope, v6.scope), ([0, 0, 0, 11], all.scope));
    }
}
