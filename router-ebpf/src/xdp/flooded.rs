//! A listener under pressure, as the maps have it at one tick of the coarse clock (`CONFIG_HZ`: 1 to 10 ms).
//!
//! A flood's SYNs of one tick meet the same listener, policy and interface. Looking them up for each, and counting each in the map,
//! would take a fifth of an answer's time. A change of the maps takes effect within a tick.

use aya_ebpf::EbpfContext;
use aya_ebpf::programs::XdpContext;
use router_common::gate::arrival::Arrival;
use router_common::gate::pressure::are_together;
use router_common::maps::{FlowKey, GATE_ANSWERS_TAGGED, PROTOCOL_TLS, pressure_id};

use crate::cookies::{self, KernelPressure};
use crate::copy::ListenerWords;
use crate::maps;
use crate::scratch::{Flooded, MAX_FLOODED};

impl Flooded {
    /// This CPU's entry, if it is of the listener and the interface of a SYN that was read in this tick.
    #[inline(always)]
    pub fn known(ctx: &XdpContext, arrival: &Arrival, now_ns: u64) -> Option<&'static mut Self> {
        let flow = &arrival.flow;
        let entry = maps::flooded(place(flow))?;
        let listener = ListenerWords::new(&flow.destination, flow.destination_port);
        let is_known = entry.at_ns == now_ns && entry.interface == interface(ctx) && entry.listener == listener;
        is_known.then_some(entry)
    }

    /// Reads this CPU's entry from the maps, and counts the SYN; `None`: its listener is not under pressure, or XDP does not
    /// answer on the interface.
    #[inline(always)]
    pub fn look_up(ctx: &XdpContext, arrival: &Arrival, now_ns: u64) -> Option<&'static mut Self> {
        let flow = &arrival.flow;
        let entry = maps::flooded(place(flow))?;
        entry.count(now_ns);
        let words = ListenerWords::new(&flow.destination, flow.destination_port);
        let listener = maps::listener_by(&words)?;
        let id = pressure_id(listener.router, listener.protocol == PROTOCOL_TLS);
        if !KernelPressure::at(id)?.count_early(now_ns, 1) {
            return None;
        }
        let interface = interface(ctx);
        let answers = maps::gate_answers(interface)?;
        entry.is_open = maps::gate_policy_by(&words).is_none() as u32;
        // SAFETY: the context is the one that the kernel gave.
        entry.max_segment = unsafe { cookies::announced_here(ctx.as_ptr().cast(), flow, &listener) } as u32;
        entry.only_tagged = (answers == GATE_ANSWERS_TAGGED) as u32;
        entry.sockets = maps::gate_sockets_in_use();
        entry.pressure = id;
        entry.listener = words;
        entry.interface = interface;
        entry.at_ns = now_ns;
        Some(entry)
    }

    /// Records that a SYN is answered.
    #[inline(always)]
    pub fn answers(&mut self) {
        if self.has_answered == 0
            && let Some(pressure) = KernelPressure::at(self.pressure)
        {
            pressure.answers(self.at_ns);
            self.has_answered = 1;
        }
    }

    /// Writes to the pressure what it lacks of its current window, and empties the entry.
    #[inline(always)]
    fn count(&mut self, now_ns: u64) {
        if are_together(self.at_ns, now_ns)
            && let Some(pressure) = KernelPressure::at(self.pressure)
        {
            pressure.count_early(now_ns, self.syns);
        }
        self.at_ns = 0;
        self.syns = 0;
        self.has_answered = 0;
        self.has_made = 0;
    }
}

/// Where the entry of a SYN's listener is.
#[inline(always)]
fn place(flow: &FlowKey) -> u32 {
    let [.., last] = flow.destination;
    (last as u32 + flow.destination_port as u32) & (MAX_FLOODED as u32 - 1)
}

#[inline(always)]
fn interface(ctx: &XdpContext) -> u32 {
    // SAFETY: the context is the one that the kernel gave.
    unsafe { (*ctx.ctx).ingress_ifindex }
}
