//! Layouts of the programs' working memory, in per-CPU maps: the BPF stack has 512 bytes. Their methods are in the
//! modules that use them.

use core::mem::offset_of;

use aya_ebpf::bindings::{bpf_fib_lookup, bpf_redir_neigh as Neighbour, bpf_sock_tuple};
use router_common::decide::ConnectionDecision;
use router_common::gate::syn_cookie::WORDS;
use router_common::http::ContentTracker;
use router_common::ip_extensions::Extensions;
use router_common::maps::{FirstFlight, Flow, FlowKey, FragmentKey, Fragmented, HostKey, LaterHead, MAX_FLIGHT};
use router_common::options::OptionReader;
use router_common::translate::Rewriter;

use crate::copy::ListenerWords;

/// Entries of each CPU's cache of next hops, indexed by a hash of the addresses; a power of two.
pub const MAX_HOPS: usize = 256;
/// Entries of each CPU for listeners that are flooded at once; a power of two.
pub const MAX_FLOODED: usize = 16;

/// Working memory of one run.
#[repr(C)]
pub struct Scratch {
    /// Key of the name itself.
    pub exact: HostKey,
    /// Key of the wildcard that covers it.
    pub wildcard: HostKey,
    /// The decision.
    pub decision: ConnectionDecision,
    /// Key of the client's entry.
    pub key: FlowKey,
    /// Key of the packet that a fragment belongs to.
    pub fragment: FragmentKey,
    /// That packet's first fragment.
    pub fragmented: Fragmented,
    /// Interface that leads to the client.
    pub arrived: u32,
    /// Decisions of this CPU so far. All other fields belong to one run.
    pub decided: u32,
    /// Position of the parser.
    pub parse: ParseLoop,
    /// Position of the reader of later requests in a segment's payload.
    pub later_at: u32,
    /// State of a later request's head.
    pub later_head: LaterHead,
    /// Headers between IP and TCP.
    pub extensions: Extensions,
    /// Content left at the reader's position.
    pub content: ContentTracker,
    /// TCP options to read.
    pub options: OptionReader,
    /// TCP options to translate.
    pub rewriter: Rewriter,
    /// The packet to make.
    pub wanted: PacketSpec,
    /// Parameters of `bpf_fib_lookup`.
    pub fib: bpf_fib_lookup,
    /// Parameters of `bpf_skc_lookup_tcp`.
    pub tuple: bpf_sock_tuple,
    /// New entry of packets from the client.
    pub client: Flow,
    /// New entry of packets from the endpoint.
    pub backend: Flow,
    /// The first flight.
    pub flight: FirstFlight,
    /// Keeps every masked position in `flight.bytes`, and the 4,096 bytes behind it, within this struct.
    pub slack: [u8; 2 * 4096 + MAX_FLIGHT as usize],
}

/// Working memory for SYN cookies, of a run of XDP or TC.
#[repr(C)]
pub struct CookieMemory {
    /// Headers, in packet order.
    pub words: [u32; WORDS],
    /// Options of a SYN.
    pub options: OptionReader,
    /// Parameters of `bpf_skc_lookup_tcp`.
    pub tuple: bpf_sock_tuple,
}

/// A listener under pressure, and an interface that XDP answers its SYNs on, as `xdp::flooded` has read them.
#[repr(C)]
pub struct Flooded {
    /// Key of the listener.
    pub listener: ListenerWords,
    /// Index of the interface.
    pub interface: u32,
    /// The tick, in coarse monotonic nanoseconds; 0: the entry is empty.
    pub at_ns: u64,
    /// SYNs since it was read, which the pressure lacks.
    pub syns: u32,
    /// Whether a SYN was answered since then.
    pub has_answered: u32,
    /// Whether the stack's listener has made a cookie since then.
    pub has_made: u32,
    /// Id of the pressure.
    pub pressure: u32,
    /// Whether only tagged SYNs are answered.
    pub only_tagged: u32,
    /// Whether the listener has no policy.
    pub is_open: u32,
    /// Segment size to announce, in bytes.
    pub max_segment: u32,
    /// What is done with `gate_sockets`.
    pub sockets: u32,
}

/// Position of the parser in the payload. In map memory, because the verifier tracks the values of stack slots through
/// every iteration of the loop: it would follow `at` through all 4,096.
#[repr(C)]
pub struct ParseLoop {
    pub at: u32,
    pub len: u32,
    pub begin: u32,
    pub outcome: u32,
    pub protocol: u32,
}

/// The packet that `craft::compose` makes. In map memory, because the stack has 512 bytes.
#[repr(C)]
pub struct PacketSpec {
    /// Addresses and ports.
    pub flow: FlowKey,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Bytes of options: 0, 4, 12 or 20.
    pub options_len: u32,
    /// First payload byte, in `FirstFlight::bytes`.
    pub start: u32,
    /// Bytes of payload, at most 4,096. If more payload follows in another segment, a multiple of four.
    pub len: u32,
    /// Window, before scaling.
    pub window: u16,
    /// TCP flags.
    pub flags: u8,
    /// 1: IPv6.
    pub v6: u8,
    /// What the checksum field of this packet holds: `SUM_*`.
    pub sum: u8,
    /// 1: the packet still has the other version of IP.
    pub turn: u8,
    /// 1: the packet keeps its length. Bytes behind the segment are padding, as in Ethernet; the stack trims them.
    pub padded: u8,
    /// Zero.
    pub pad: u8,
    /// Headers in packet order; an IPv4 header takes the second half of `ip`.
    pub ip: [u32; 10],
    pub tcp: [u32; 5],
    pub options: [u32; 5],
}

const _: () = assert!(
    offset_of!(PacketSpec, tcp) == offset_of!(PacketSpec, ip) + 40
        && offset_of!(PacketSpec, options) == offset_of!(PacketSpec, tcp) + 20
);

/// A next hop with the addresses that it was looked up for. Source and destination, because routing rules and multipath
/// routes depend on both.
#[repr(C)]
pub struct NextHop {
    /// Source and destination; no ports.
    pub flow: FlowKey,
    /// Interface that the packets leave by.
    pub interface: u32,
    /// Expiry, in coarse monotonic nanoseconds.
    pub until_ns: u64,
    /// Whether the next hop is known.
    pub known: u32,
    /// Whether `macs` is valid.
    pub resolved: u32,
    /// Whether `bpf_redirect_peer` is permitted on the interface.
    pub peer: u32,
    /// MTU of the interface, in bytes; valid with `macs`.
    pub mtu: u32,
    /// Ethernet addresses, destination first, as in the header.
    pub macs: [u8; 12],
    /// The next hop.
    pub neighbour: Neighbour,
}
