//! Frames with headers between IP and TCP, and in fragments, as a sender or a router on the way creates them.

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

fn is_v6(frame: &[u8]) -> bool {
    frame[ETHERNET] >> 4 == 6
}

/// Size of Ethernet and IP header in bytes, without headers between IP and TCP.
fn headers(frame: &[u8]) -> usize {
    if is_v6(frame) { ETHERNET + 40 } else { ETHERNET + 20 }
}

/// Recomputes the IPv4 header checksum (RFC 1071).
fn sum_up(frame: &mut [u8]) {
    let end = ETHERNET + usize::from(frame[ETHERNET] & 15) * 4;
    frame[ETHERNET + 10..ETHERNET + 12].fill(0);
    let words = frame[ETHERNET..end].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let field = !((folded & 0xffff) + (folded >> 16)) as u16;
    frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&field.to_be_bytes());
}

/// A frame with an authentication header (RFC 4302 §2) of an unknown security association before its segment.
pub fn authenticated(frame: &[u8]) -> Vec<u8> {
    const LENGTH: usize = 24;
    const AH: u8 = 51;
    let (begin, v6) = (headers(frame), is_v6(frame));
    let mut dressed = frame[..begin].to_vec();
    let protocol = if v6 { ETHERNET + 6 } else { ETHERNET + 9 };
    dressed[protocol] = AH;
    // Next header TCP; length in 32-bit words, minus two; an SPI, a sequence number, and an invalid ICV.
    dressed.extend([6, 4, 0, 0, 0, 0, 0x12, 0x34]);
    dressed.extend([1; LENGTH - 8]);
    dressed.extend(&frame[begin..]);
    let data = dressed.len() - begin;
    set_length(&mut dressed, data);
    if !v6 {
        sum_up(&mut dressed);
    }
    dressed
}

fn set_length(frame: &mut [u8], data: usize) {
    let (at, length) = if is_v6(frame) { (ETHERNET + 4, data) } else { (ETHERNET + 2, data + 20) };
    frame[at..at + 2].copy_from_slice(&u16::try_from(length).unwrap_or(0).to_be_bytes());
}

/// A frame of a segment in fragments of at most `size` bytes, a multiple of 8 (RFC 791 §3.2, RFC 8200 §4.5); a shorter
/// frame is not fragmented. For IPv4, the DF flag is ignored.
pub fn fragments(frame: &[u8], id: u32, size: usize) -> Vec<Vec<u8>> {
    let begin = headers(frame);
    let v6 = is_v6(frame);
    let (at, length) = if v6 { (ETHERNET + 4, 40) } else { (ETHERNET + 2, 0) };
    let end = ETHERNET + length + usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let data = &frame[begin..end];
    if data.len() <= size {
        return vec![frame.to_vec()];
    }
    let part = |(i, part): (usize, &[u8])| {
        let (offset, more) = ((i * size) as u16, u16::from((i + 1) * size < data.len()));
        let mut fragment = frame[..begin].to_vec();
        if v6 {
            fragment[ETHERNET + 6] = 44;
            fragment.extend([6, 0]);
            fragment.extend((offset | more).to_be_bytes());
            fragment.extend(id.to_be_bytes());
            set_length(&mut fragment, part.len() + 8);
        } else {
            fragment[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&(id as u16).to_be_bytes());
            fragment[ETHERNET + 6..ETHERNET + 8].copy_from_slice(&((offset / 8) | (more << 13)).to_be_bytes());
            set_length(&mut fragment, part.len());
            sum_up(&mut fragment);
        }
        fragment.extend(part);
        fragment
    };
    data.chunks(size).enumerate().map(part).collect()
}
