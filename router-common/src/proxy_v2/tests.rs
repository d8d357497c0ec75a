//! Headers compared with another implementation.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::vec::Vec;

use proptest::prelude::*;
use proxy_header::{ParseConfig, Protocol, ProxiedAddress, ProxyHeader};

use super::*;
use crate::maps::mapped;

/// The bytes of a header without the padding.
fn bytes(flow: &FlowKey) -> Vec<u8> {
    let (header, len) = header(flow);
    assert!(header[len as usize..].iter().all(|byte| *byte == 0), "something after the header");
    header[..len as usize].to_vec()
}

/// `proxy-header`'s address of a 16-byte one; IPv4-mapped ones become IPv4 only if both are mapped.
fn addresses(flow: &FlowKey) -> (SocketAddr, SocketAddr) {
    let [source, destination] = [flow.source, flow.destination].map(Ipv6Addr::from);
    let ip = match (source.to_ipv4_mapped(), destination.to_ipv4_mapped()) {
        (Some(source), Some(destination)) => [IpAddr::V4(source), IpAddr::V4(destination)],
        _ => [IpAddr::V6(source), IpAddr::V6(destination)],
    };
    (SocketAddr::new(ip[0], flow.source_port), SocketAddr::new(ip[1], flow.destination_port))
}

/// Any address; every fourth is close to an IPv4-mapped one.
fn address() -> impl Strategy<Value = [u8; 16]> {
    prop_oneof![
        2 => any::<[u8; 4]>().prop_map(mapped),
        1 => any::<[u8; 16]>(),
        1 => (any::<[u8; 4]>(), 0..12_usize, any::<u8>()).prop_map(|(v4, at, byte)| {
            let mut address = mapped(v4);
            address[at] = byte;
            address
        }),
    ]
}

fn flow() -> impl Strategy<Value = FlowKey> {
    (address(), address(), any::<u16>(), any::<u16>()).prop_map(
        |(source, destination, source_port, destination_port)| FlowKey {
            source,
            destination,
            source_port,
            destination_port,
        },
    )
}

proptest! {
    #[test]
    fn another_implementation_reads_and_writes_the_same(flow in flow()) {
        let ours = bytes(&flow);
        let (source, destination) = addresses(&flow);
        let config = ParseConfig { allow_v1: false, ..ParseConfig::default() };
        let (read, len) = ProxyHeader::parse(&ours, config)?;
        prop_assert_eq!(len, ours.len());
        let found = read.proxied_address().map(|address| (address.protocol, address.source, address.destination));
        prop_assert_eq!(found, Some((Protocol::Stream, source, destination)));
        let mut theirs = Vec::new();
        ProxyHeader::with_address(ProxiedAddress::stream(source, destination)).encode_v2(&mut theirs)?;
        prop_assert_eq!(ours, theirs);
    }
}

#[test]
fn ipv4_header_is_that_of_the_specification() {
    let flow = FlowKey {
        source: mapped([192, 0, 2, 7]),
        destination: mapped([198, 51, 100, 1]),
        source_port: 40000,
        destination_port: 443,
    };
    let expected = [
        0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, // signature
        0x21, 0x11, 0, 12, 192, 0, 2, 7, 198, 51, 100, 1, 0x9c, 0x40, 0x01, 0xbb,
    ];
    assert_eq!(bytes(&flow), expected);
}

#[test]
fn one_mapped_address_alone_is_written_as_ipv6() {
    let v6 = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    for (source, destination) in [(mapped([192, 0, 2, 7]), v6), (v6, mapped([192, 0, 2, 7]))] {
        let flow = FlowKey { source, destination, source_port: 1, destination_port: 65535 };
        let header = bytes(&flow);
        assert_eq!((header.len(), header[13], header[15]), (52, 0x21, 36));
        assert_eq!((&header[16..32], &header[32..48]), (&source[..], &destination[..]));
    }
}

#[test]
fn an_address_that_differs_from_a_mapped_one_in_any_bytes_is_written_as_ipv6() {
    for (one, other) in (0..12).flat_map(|one| (one..12).map(move |other| (one, other))) {
        let mut source = mapped([192, 0, 2, 7]);
        source[one] ^= 1;
        source[other] |= if source[other] == 0 { 1 } else { 0 };
        let flow = FlowKey { source, destination: mapped([192, 0, 2, 8]), source_port: 1, destination_port: 2 };
        assert_eq!(bytes(&flow).len(), 52, "{one} and {other}");
    }
}
