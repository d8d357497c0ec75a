//! Addresses and ports that may have a socket of this host: recorded at TC before the stack makes one, read by XDP.

use router_common::gate::known_sockets::{Place, place};
use router_common::maps::{FlowKey, GATE_SOCKETS_FOUND, GATE_SOCKETS_RECORDED, GATE_SOCKETS_SEEN};

use crate::atomic::fetch_or;
use crate::maps;
use crate::socket_lookup::Sockets;

/// Records a client whose segment goes up the stack, if it is needed. A separate function: its stack frame is free again after
/// it returns.
#[inline(never)]
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

/// The sockets to look for at a client's SYN. `used`: what is done with `gate_sockets`.
#[inline(always)]
pub fn to_look_for(used: u32, client: &FlowKey) -> Sockets {
    if used == 0 || used == GATE_SOCKETS_RECORDED {
        return Sockets::All;
    }
    let Place { word, bit } = place(client);
    if has(GATE_SOCKETS_FOUND, word, bit) || has(used, word, bit) { Sockets::All } else { Sockets::Listeners }
}

#[inline(always)]
fn has(index: u32, word: u32, bit: u32) -> bool {
    // SAFETY: `maps` gives a pointer to an aligned word of a live value.
    maps::gate_socket_word(index, word).is_none_or(|word| unsafe { word.read_volatile() } & bit != 0)
}
