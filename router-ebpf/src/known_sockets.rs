//! Addresses and ports that may have a socket of this host: recorded at TC before the stack makes one, read by XDP.

use router_common::gate::known_sockets::{Place, place};
use router_common::maps::{FlowKey, GATE_SOCKETS_FOUND, GATE_SOCKETS_RECORDED, GATE_SOCKETS_SEEN};

use crate::atomic::fetch_or;
use crate::maps;

/// Records a client whose segment goes up the stack, if it is needed.
#[inline(always)]
pub fn record(client: &FlowKey) {
    if maps::gate_sockets_in_use() == 0 {
        return;
    }
    let Place { word, bit } = place(client);
    let [one, other] = GATE_SOCKETS_SEEN;
    set(one, word, bit);
    set(other, word, bit);
}

#[inline(always)]
fn set(index: u32, word: u32, bit: u32) {
    if !has(index, word, bit)
        && let Some(word) = maps::gate_socket_word(index, word)
    {
        // SAFETY: `maps` gives a pointer to an aligned word of a live value.
        unsafe { fetch_or(word.cast(), bit) };
    }
}

/// Whether a client may have a socket, if that is to be read from this entry of `gate_sockets`.
#[inline(always)]
pub fn may_have_one(used: u32, client: &FlowKey) -> bool {
    if used == 0 || used == GATE_SOCKETS_RECORDED {
        return true;
    }
    let Place { word, bit } = place(client);
    has(GATE_SOCKETS_FOUND, word, bit) || has(used, word, bit)
}

#[inline(always)]
fn has(index: u32, word: u32, bit: u32) -> bool {
    // SAFETY: `maps` gives a pointer to an aligned word of a live value.
    maps::gate_socket_word(index, word).is_none_or(|word| unsafe { word.read_volatile() } & bit != 0)
}
