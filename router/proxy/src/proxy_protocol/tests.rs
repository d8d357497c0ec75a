//! Headers of both versions, split anywhere, and bytes that are no header.

use proptest::prelude::*;

use super::*;

const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A header of version 2: command, family and protocol, and the bytes after the length.
fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    [V2, &[0x20 | command, family], &(body.len() as u16).to_be_bytes(), body].concat()
}

fn four() -> Vec<u8> {
    vec![192, 0, 2, 7, 198, 51, 100, 1, 0x12, 0x34, 1, 0xbb]
}

fn ends(client: &str, listener: &str) -> Option<(SocketAddr, SocketAddr)> {
    Some((client.parse().unwrap(), listener.parse().unwrap()))
}

#[test]
fn headers_name_the_client() {
    let six: Vec<u8> =
        [&[0x20, 1, 0xd, 0xb8], &[0; 11][..], &[7], &[0x20, 1, 0xd, 0xb8], &[0; 11], &[1], &four()[8..]].concat();
    let mapped: Vec<u8> =
        [&[0; 10][..], &[255, 255, 192, 0, 2, 7], &[0; 10], &[255, 255, 198, 51, 100, 1], &four()[8..]].concat();
    let with_tlv: Vec<u8> = [four(), vec![5, 0, 2, 0xaa, 0xbb]].concat();
    for (header, expected) in [
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 4660 443\r\n".to_vec(), ends("192.0.2.7:4660", "198.51.100.1:443")),
        (b"PROXY TCP6 2001:db8::7 2001:db8::1 4660 443\r\n".to_vec(), ends("[2001:db8::7]:4660", "[2001:db8::1]:443")),
        (b"PROXY UNKNOWN\r\n".to_vec(), None),
        (v2(1, 0x11, &four()), ends("192.0.2.7:4660", "198.51.100.1:443")),
        (v2(1, 0x11, &with_tlv), ends("192.0.2.7:4660", "198.51.100.1:443")),
        (v2(1, 0x21, &six), ends("[2001:db8::7]:4660", "[2001:db8::1]:443")),
        (v2(1, 0x21, &mapped), ends("192.0.2.7:4660", "198.51.100.1:443")),
        // A datagram protocol cannot be that of a TCP connection.
        (v2(1, 0x12, &four()), None),
        (v2(0, 0, &[]), None),
        (v2(0, 0x11, &four()), None),
    ] {
        let whole = [&header[..], b"rest"].concat();
        assert_eq!(parse(&whole).unwrap(), Some(Proxied { ends: expected, rest: b"rest".to_vec() }), "{header:?}");
        for cut in 0..header.len() {
            assert!(matches!(parse(&header[..cut]), Ok(None)), "{header:?} cut at {cut}");
        }
    }
}

#[test]
fn other_first_bytes_are_refused() {
    let long = v2(1, 0x11, &[four(), vec![5, 0x10, 0], vec![0; 0x1000]].concat());
    assert!(matches!(parse(&long), Err(NoHeader::TooLarge)));
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"POST / HTTP/1.1\r\n\r\n",
        &[22, 3, 1, 2, 0],
        b"PROXY TCP4 nobody 198.51.100.1 4660 443\r\n",
        b"PROXY TCP4 192.0.2.7 198.51.100.1 466000 443\r\n",
    ] {
        assert!(matches!(parse(bytes), Err(NoHeader::Invalid(_))), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_break_it(start in 0..3_usize, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let starts: [&[u8]; 3] = [b"PROXY ", V2, b""];
        let _ = parse(&[starts[start], &bytes].concat());
    }

    #[test]
    fn no_text_breaks_it(text in "PROXY (TCP4|TCP6|UNKNOWN|TCP)?[ 0-9a-f.:\\r\\n]{0,120}") {
        let _ = parse(text.as_bytes());
    }
}
