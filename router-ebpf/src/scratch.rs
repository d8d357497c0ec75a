//! Layouts of the programs' working memory, in per-CPU maps: the BPF stack has 512 bytes. What works on them has their
//! functions.

use core::mem::offset_of;

use aya_ebpf::bindings::{bpf_fib_lookup, bpf_redir_neigh as Neighbour, bpf_sock_tuple};
use router_common::decide::Decision;
use router_common::extensions::Extensions;
use router_common::http::Content;
use router_common::maps::{FirstFlight, Flow, FlowKey, FragmentKey, Fragmented, HostKey, LaterHead, MAX_FLIGHT};
use router_common::options::Reader;
use router_common::translate::Rewriter;

/// Next hops that a CPU remembers, each in the one place that its addresses give; a power of two.
pub const MAX_HOPS: usize = 256;

/// Working memory of one run; the BPF stack has 512 bytes.
#[repr(C)]
pub struct Scratch {
    /// Key of the name itself.
    pub exact: HostKey,
    /// Key of the wildcard that covers it.
    pub wildcard: HostKey,
    /// What was decided.
    pub decision: Decision,
    /// Key of the client's entry.
    pub key: FlowKey,
    /// The packet that a fragment is of.
    pub fragment: FragmentKey,
    /// What its first one told.
    pub fragmented: Fragmented,
    /// Interface that leads to the client.
    pub arrived: u32,
    /// Decisions of this CPU so far; not one run's, as all else here is.
    pub decided: u32,
    /// Where the parser is.
    pub parse: ParseLoop,
    /// Where in a segment's payload the reader of later requests is.
    pub later_at: u32,
    /// What is kept of one.
    pub later_head: LaterHead,
    /// What stands between IP and TCP.
    pub extensions: Extensions,
    /// What is left of content where the reader is.
    pub content: Content,
    /// The options that are read.
    pub options: Reader,
    /// The options that are translated.
    pub rewriter: Rewriter,
    /// The packet that is being made.
    pub wanted: PacketSpec,
    /// The route that is asked for.
    pub fib: bpf_fib_lookup,
    /// The socket that is asked for.
    pub tuple: bpf_sock_tuple,
    /// New entry of packets from the client.
    pub client: Flow,
    /// New entry of packets from the endpoint.
    pub backend: Flow,
    /// The first flight that is read, or sent.
    pub flight: FirstFlight,
    /// What makes every masked position in `flight.bytes`, and 4,096 bytes from there on, a place in this struct.
    pub slack: [u8; 2 * 4096 + MAX_FLIGHT as usize],
}

/// Where the parser is in the payload. It lives in map memory, not on the stack: the verifier follows every value of
/// a stack slot from one turn of the loop to the next, and would follow `at` through all 4,096.
#[repr(C)]
pub struct ParseLoop {
    pub at: u32,
    pub len: u32,
    pub begin: u32,
    pub outcome: u32,
    pub protocol: u32,
}

/// The packet that is wanted. It lies in map memory, because the stack has 512 bytes.
#[repr(C)]
pub struct PacketSpec {
    /// Addresses and ports.
    pub flow: FlowKey,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Bytes of options: 0, 12 or 20.
    pub options_len: u32,
    /// First payload byte, in `FirstFlight::bytes`.
    pub start: u32,
    /// Bytes of payload, at most 4,096. What follows must begin at a multiple of four from the start.
    pub len: u32,
    /// Window, before scaling.
    pub window: u16,
    /// TCP flags.
    pub flags: u8,
    /// 1: IPv6.
    pub v6: u8,
    /// What the checksum field of this packet holds: `SUM_*`.
    pub sum: u8,
    /// 1: the packet is of the other version of IP as yet.
    pub turn: u8,
    /// 1: the packet stays as long as it is. What is behind the segment is padding, as of Ethernet: the stack cuts it off.
    pub padded: u8,
    /// Zero.
    pub pad: u8,
    /// From here on as they lie in the packet, one behind the other: an IPv4 header takes the second half of its room.
    pub ip: [u32; 10],
    pub tcp: [u32; 5],
    pub options: [u32; 5],
}

const _: () = assert!(
    offset_of!(PacketSpec, tcp) == offset_of!(PacketSpec, ip) + 40
        && offset_of!(PacketSpec, options) == offset_of!(PacketSpec, tcp) + 20
);

/// A next hop, and what it was found for. A rule may tell sources apart, and so may several next hops of one route.
#[repr(C)]
pub struct Hop {
    /// Source and destination; no ports.
    pub flow: FlowKey,
    /// Interface that the packets leave by.
    pub interface: u32,
    /// Coarse monotonic nanoseconds until which it stands.
    pub until_ns: u64,
    /// Whether the next hop is known.
    pub known: u32,
    /// Whether `macs` are.
    pub resolved: u32,
    /// Whether packets may be handed to the other end of the interface.
    pub peer: u32,
    /// Zero.
    pub pad: u32,
    /// The Ethernet addresses of the next hop and ours, as a header has them.
    pub macs: [u8; 12],
    /// The next hop.
    pub neighbour: Neighbour,
}
