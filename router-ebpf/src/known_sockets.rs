//! Addresses and ports that may have a socket of this host: recorded at TC before the stack makes one, read by XDP.

use router_common::gate::known_sockets::{Places, places};
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
    let places = places(client);
    let [one, other] = GATE_SOCKETS_SEEN;
    set(one, &places);
    set(other, &places);
}

#[inline(always)]
fn set(index: u32, places: &Places) {
    let Some([coarse, fine]) = maps::gate_socket_words(index, places) else { return };
    for (word, bit) in [(coarse, places.coarse.bit), (fine, places.fine.bit)] {
        // SAFETY: `maps` gives pointers to aligned words of a live value.
        unsafe {
            if word.read_volatile() & bit == 0 {
                fetch_or(word.cast(), bit);
            }
        }
    }
}

/// The sockets to look for at a client's SYN. `used`: what is done with `gate_sockets`.
#[inline(always)]
pub fn to_look_for(used: u32, client: &FlowKey) -> Sockets {
    if used == 0 || used == GATE_SOCKETS_RECORDED {
        return Sockets::All;
    }
    let places = places(client);
    if has(GATE_SOCKETS_FOUND, &places) || has(used, &places) { Sockets::All } else { Sockets::Listeners }
}

#[inline(always)]
fn has(index: u32, places: &Places) -> bool {
    let Some([coarse, fine]) = maps::gate_socket_words(index, places) else { return true };
    // SAFETY: `maps` gives pointers to aligned words of a live value.
    unsafe { coarse.read_volatile() & places.coarse.bit != 0 && fine.read_volatile() & places.fine.bit != 0 }
}
