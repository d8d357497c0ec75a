//! Keys of the tries of networks: of routes' allow-lists, and of the gate's lists.

use std::borrow::Borrow;

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{MapData, MapError};
use router_common::maps::{SCOPE_BITS, ScopedNet};
use router_sys::abi::Raw;

/// The key of a network.
pub type NetKey = Key<Raw<ScopedNet>>;
/// A trie of networks.
pub type NetTrie<T> = LpmTrie<T, Raw<ScopedNet>, u32>;
/// A network: its scope, its address in 16-byte form, and the bits of that form.
pub type Net = (u32, [u8; 16], u8);

/// Makes the key of a network.
pub fn key((scope, address, bits): Net) -> NetKey {
    Key::new(SCOPE_BITS + u32::from(bits), Raw(ScopedNet::of(scope, address)))
}

/// The networks of a trie.
pub fn nets<T: Borrow<MapData>>(trie: &NetTrie<T>) -> impl Iterator<Item = Result<Net, MapError>> {
    trie.keys().map(|key| {
        let key = key?;
        let Raw(net) = key.data();
        let bits = key.prefix_len().saturating_sub(SCOPE_BITS);
        Ok((net.scope(), net.address, u8::try_from(bits).unwrap_or(u8::MAX)))
    })
}
