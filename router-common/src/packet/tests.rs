//! Frames that are read, and frames that are left to the stack.

use std::vec;
use std::vec::Vec;

use super::*;

const CLIENT: [u8; 4] = [192, 0, 2, 7];
const LISTENER: [u8; 4] = [198, 51, 100, 1];
const CLIENT6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
const LISTENER6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Ports 40000 → 443, sequence 0x01020304, acknowledgement 0x05060708, PSH and ACK.
fn tcp_bytes(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let offset = ((20 + options.len()) / 4) as u8;
    let header = [0x9c, 0x40, 1, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, offset << 4, 0x18, 0xff, 0xff, 0, 0, 0, 0];
    [&header[..], options, payload].concat()
}

fn frame(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &ethertype.to_be_bytes(), packet].concat()
}

fn frame4(options: &[u8], tcp: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let total = ((header + tcp.len()) as u16).to_be_bytes();
    let first = 0x40 | (header / 4) as u8;
    let ip = [first, 0, total[0], total[1], 0, 1, 0x40, 0, 64, 6, 0, 0];
    frame(0x0800, &[&ip[..], &CLIENT, &LISTENER, options, tcp].concat())
}

fn frame6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    let ip = [0x60, 0, 0, 0, length[0], length[1], next, 64];
    frame(0x86dd, &[&ip[..], &CLIENT6, &LISTENER6, payload].concat())
}

/// The payload of a frame, as the parser sees it.
fn payload(frame: &[u8]) -> Result<&[u8], NotTcp> {
    let segment = segment(&frame)?;
    Ok(&frame[segment.payload as usize..][..segment.payload_len as usize])
}

#[test]
fn ipv4_fields_are_read() {
    let frame = frame4(&[], &tcp_bytes(&[], b"hello"));
    let expected = Segment {
        flow: FlowKey {
            source: mapped(CLIENT),
            destination: mapped(LISTENER),
            source_port: 40000,
            destination_port: 443,
        },
        v6: false,
        seq: 0x0102_0304,
        ack: 0x0506_0708,
        flags: ACK | 0x08,
        window: 0xffff,
        tcp: 34,
        payload: 54,
        payload_len: 5,
    };
    assert_eq!(segment(&&frame[..]), Ok(expected));
}

#[test]
fn ipv6_fields_are_read() {
    let frame = frame6(6, &tcp_bytes(&[], b"hello"));
    let expected = Segment {
        flow: FlowKey { source: CLIENT6, destination: LISTENER6, source_port: 40000, destination_port: 443 },
        v6: true,
        seq: 0x0102_0304,
        ack: 0x0506_0708,
        flags: ACK | 0x08,
        window: 0xffff,
        tcp: 54,
        payload: 74,
        payload_len: 5,
    };
    assert_eq!(segment(&&frame[..]), Ok(expected));
}

#[test]
fn tcp_options_of_any_length_are_skipped() {
    for words in 0..=10 {
        let tcp = tcp_bytes(&vec![1; words * 4], b"hello");
        assert_eq!(payload(&frame4(&[], &tcp)), Ok(&b"hello"[..]), "{words}");
        assert_eq!(payload(&frame6(6, &tcp)), Ok(&b"hello"[..]), "{words}");
    }
}

#[test]
fn ipv4_options_are_left_to_the_reader() {
    for words in 1..=10 {
        let frame = frame4(&vec![1; words * 4], &tcp_bytes(&[], b"hello"));
        assert_eq!(payload(&frame), Err(NotTcp::Unreadable), "{words}");
    }
}

#[test]
fn flags_are_distinguished() {
    for flag in [FIN, SYN, RST, ACK] {
        let mut frame = frame4(&[], &tcp_bytes(&[], b""));
        frame[34 + 13] = flag;
        assert_eq!(segment(&&frame[..]).map(|segment| (segment.flags, segment.payload_len)), Ok((flag, 0)));
    }
}

#[test]
fn ethernet_padding_is_no_payload() {
    for (mut frame, data) in [
        (frame4(&[], &tcp_bytes(&[], b"")), &b""[..]),
        (frame4(&[], &tcp_bytes(&[], b"x")), b"x"),
        (frame6(6, &tcp_bytes(&[], b"x")), b"x"),
    ] {
        frame.resize(frame.len() + 20, 0);
        assert_eq!(payload(&frame), Ok(data));
    }
}

#[test]
fn a_length_of_zero_means_all_of_the_packet() {
    let mut big = frame4(&[], &tcp_bytes(&[], &[7; 70_000]));
    big[16..18].fill(0);
    assert_eq!(payload(&big).map(<[u8]>::len), Ok(70_000));
    let mut big = frame6(6, &tcp_bytes(&[], &[7; 70_000]));
    big[18..20].fill(0);
    assert_eq!(payload(&big).map(<[u8]>::len), Ok(70_000));
}

#[test]
fn fragments_are_left_to_the_stack() {
    for (bits, expected) in [
        ([0x00, 0], Ok(&b"hello"[..])),
        ([0x40, 0], Ok(b"hello")),
        ([0x20, 0], Err(NotTcp::Unreadable)),
        ([0x00, 1], Err(NotTcp::Unreadable)),
        ([0x01, 0], Err(NotTcp::Unreadable)),
        ([0x1f, 255], Err(NotTcp::Unreadable)),
    ] {
        let mut frame = frame4(&[], &tcp_bytes(&[], b"hello"));
        frame[20..22].copy_from_slice(&bits);
        assert_eq!(payload(&frame), expected, "{bits:?}");
    }
    for next in [0, 43, 44, 51, 60] {
        let frame = frame6(next, &[&[6, 0, 0, 0, 0, 0, 0, 0][..], &tcp_bytes(&[], b"hello")].concat());
        assert_eq!(payload(&frame), Err(NotTcp::Unreadable), "extension header {next}");
    }
}

#[test]
fn other_protocols_are_none_of_ours() {
    let tcp = tcp_bytes(&[], b"hello");
    for protocol in [1, 17, 132, 47] {
        let mut frame = frame4(&[], &tcp);
        frame[23] = protocol;
        assert_eq!(payload(&frame), Err(NotTcp::Other), "{protocol}");
        // A fragment of another protocol is left to the stack, too.
        frame[20] = 0x20;
        assert_eq!(payload(&frame), Err(NotTcp::Other), "{protocol}");
    }
    for next in [1, 17, 58, 59, 41] {
        assert_eq!(payload(&frame6(next, &tcp)), Err(NotTcp::Other), "{next}");
    }
    for ethertype in [0x0806, 0x8100, 0x88a8, 0x8847, 0x0008] {
        let frame = frame(ethertype, &frame4(&[], &tcp)[14..]);
        assert_eq!(payload(&frame), Err(NotTcp::Other), "{ethertype:#x}");
    }
}

#[test]
fn every_truncation_is_short() {
    for whole in [
        frame4(&[], &tcp_bytes(&[], b"hello")),
        frame4(&[], &tcp_bytes(&[1; 12], b"hello")),
        frame6(6, &tcp_bytes(&[1; 12], b"hello")),
    ] {
        assert_eq!(payload(&whole), Ok(&b"hello"[..]));
        for len in 0..whole.len() {
            assert_eq!(payload(&whole[..len]), Err(NotTcp::Short), "{len} of {}", whole.len());
        }
    }
}

#[test]
fn lengths_that_contradict_each_other_are_short() {
    let change = |at: usize, byte: u8| {
        let mut frame = frame4(&[], &tcp_bytes(&[], b"hello"));
        frame[at] = byte;
        payload(&frame).map(<[u8]>::len)
    };
    assert_eq!(change(14, 0x44), Err(NotTcp::Unreadable), "IPv4 header of 16 bytes");
    assert_eq!(change(14, 0x65), Err(NotTcp::Unreadable), "version 6 in an IPv4 frame");
    assert_eq!(change(14, 0x4f), Err(NotTcp::Unreadable), "IPv4 header longer than the packet");
    assert_eq!(change(46, 0x40), Err(NotTcp::Short), "TCP header of 16 bytes");
    assert_eq!(change(46, 0xf0), Err(NotTcp::Short), "TCP header longer than the packet");
    assert_eq!(change(17, 46), Err(NotTcp::Short), "total length more than the packet");
    assert_eq!(change(17, 39), Err(NotTcp::Short), "total length less than the headers");
    assert_eq!(change(17, 40), Ok(0));
}

#[test]
fn no_bytes_panic() {
    // Every one-byte change of a valid frame, and of its truncations.
    for whole in [frame4(&[1; 4], &tcp_bytes(&[1; 4], b"x")), frame6(6, &tcp_bytes(&[1; 4], b"x"))] {
        for at in 0..whole.len() {
            for byte in [0, 1, 0x0f, 0x7f, 0x80, 0xf0, 0xff] {
                let mut frame = whole.clone();
                frame[at] = byte;
                for len in 0..=frame.len() {
                    if let Ok(found) = segment(&&frame[..len]) {
                        assert!((found.payload + found.payload_len) as usize <= len);
                    }
                }
            }
        }
    }
}

#[test]
fn a_packet_of_no_bytes_is_empty() {
    assert!(Packet::is_empty(&&[][..]) && !Packet::is_empty(&&[0][..]));
}
