//! The PROXY protocol header, version 2, which carries the client's address to a backend (HAProxy, proxy-protocol.txt
//! §2.2).

use crate::maps::{FlowKey, is_mapped};

/// Most bytes of a header, that of IPv6.
pub const MAX_HEADER: usize = 52;
/// Bytes of a header for IPv4.
pub const IPV4_HEADER: u32 = 28;
/// Bytes of a header for IPv6.
pub const IPV6_HEADER: u32 = 52;

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, command PROXY: the connection is on behalf of another client.
const VERSION_AND_COMMAND: u8 = 0x21;
/// `AF_INET` and `STREAM`.
const TCP_OVER_IPV4: u8 = 0x11;
/// `AF_INET6` and `STREAM`.
const TCP_OVER_IPV6: u8 = 0x21;
/// Bytes after the length field: two addresses, two ports.
const IPV4_BLOCK: u8 = 12;
const IPV6_BLOCK: u8 = 36;

/// The header of a connection from a client (source) to a listener (destination), and its length in bytes; the rest of
/// the array is 0. Two IPv4-mapped addresses are written as IPv4; if only one is mapped, both are written as IPv6.
#[inline(always)]
pub fn header(flow: &FlowKey) -> ([u8; MAX_HEADER], u32) {
    let mut header = [0; MAX_HEADER];
    header[..12].copy_from_slice(&SIGNATURE);
    header[12] = VERSION_AND_COMMAND;
    let source_port = flow.source_port.to_be_bytes();
    let destination_port = flow.destination_port.to_be_bytes();
    if is_mapped(&flow.source) && is_mapped(&flow.destination) {
        header[13] = TCP_OVER_IPV4;
        header[15] = IPV4_BLOCK;
        header[16..20].copy_from_slice(&flow.source[12..]);
        header[20..24].copy_from_slice(&flow.destination[12..]);
        header[24..26].copy_from_slice(&source_port);
        header[26..28].copy_from_slice(&destination_port);
        return (header, IPV4_HEADER);
    }
    header[13] = TCP_OVER_IPV6;
    header[15] = IPV6_BLOCK;
    header[16..32].copy_from_slice(&flow.source);
    header[32..48].copy_from_slice(&flow.destination);
    header[48..50].copy_from_slice(&source_port);
    header[50..52].copy_from_slice(&destination_port);
    (header, IPV6_HEADER)
}

#[cfg(test)]
mod tests;
