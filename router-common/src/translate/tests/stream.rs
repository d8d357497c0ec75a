//! Two ends exchange data, each in its own numbering, over a network that loses, duplicates and reorders packets.

use std::collections::VecDeque;
use std::vec::Vec;

use proptest::prelude::*;

use super::super::FlowTranslation;
use super::ends::{End, Start};
use super::frame::{Frame, Sums};
use super::{any_flow, any_number, translated};

const STATES: [Sums; 3] = [Sums::Full, Sums::Partial, Sums::Complete(0)];
/// Turns after the bad ones within which everything must arrive: in the worst case each probe delivers a byte.
const TURNS: u32 = 100_000;

/// The client, the backend, and the packets in transit.
#[derive(Debug)]
struct World {
    ends: [End; 2],
    translations: [FlowTranslation; 2],
    /// Receiver and translated packet.
    wire: VecDeque<(usize, Frame)>,
    now: u32,
}

impl World {
    fn send(&mut self, from: usize, frame: Option<Frame>) {
        if let Some(frame) = frame {
            self.wire.push_back((1 - from, translated(&frame, &self.translations[from])));
        }
    }

    fn deliver(&mut self) {
        let Some((to, frame)) = self.wire.pop_front() else { return };
        if self.ends[to].receive(&frame, self.now) {
            let reply = self.ends[to].acknowledge(self.now, STATES[self.now as usize % 3]);
            self.send(to, Some(reply));
        }
    }

    /// One turn of a bad network.
    fn turn(&mut self, choice: u8) {
        self.now += 1;
        let (end, sums) = (usize::from(choice >> 7), STATES[usize::from(choice) % 3]);
        match choice % 16 {
            0..=4 => self.deliver(),
            5 => drop(self.wire.pop_front()),
            6 => self.wire.extend(self.wire.front().cloned()),
            7 | 8 => {
                let first = self.wire.pop_front();
                self.wire.extend(first);
            }
            9..=11 => {
                let frame = self.ends[end].next(self.now, sums);
                self.send(end, frame);
            }
            12 => {
                let frame = self.ends[end].repeat(self.now, sums);
                self.send(end, frame);
            }
            13 => {
                let frame = self.ends[end].acknowledge(self.now, sums);
                self.send(end, Some(frame));
            }
            _ => self.ends[end].take(u64::from(choice)),
        }
    }

    /// One turn of a network that delivers.
    fn good_turn(&mut self) {
        self.now += 1;
        if !self.wire.is_empty() {
            return self.deliver();
        }
        for end in [0, 1] {
            self.ends[end].take(u64::MAX >> 1);
            let window = self.ends[end].acknowledge(self.now, Sums::Full);
            let repeated = self.ends[end].repeat(self.now, Sums::Full);
            let next = self.ends[end].next(self.now, Sums::Full);
            for frame in [Some(window), repeated, next] {
                self.send(end, frame);
            }
        }
    }
}

/// Parameters of an end: sequence number, clock, shift, capacity, data.
fn any_side() -> impl Strategy<Value = (u32, u32, u8, u64, Vec<u8>)> {
    let capacity = prop_oneof![1..50_u64, 50..5000_u64, 60_000..2_000_000_u64];
    (any_number(), any_number(), 0..15_u8, capacity, prop::collection::vec(any::<u8>(), 0..1500))
}

prop_compose! {
    /// The client's peer is the listener, the backend's is the router; neither knows the other.
    fn any_world()(v6 in any::<bool>())(
        client_flow in any_flow(v6),
        backend_flow in any_flow(v6),
        client in any_side(),
        backend in any_side(),
        listener in (any_number(), any_number(), 0..15_u8),
        ours in (any_number(), any_number(), prop::option::of(0..15_u8)),
        clocks in any::<bool>(),
        sack in any::<bool>(),
    ) -> (World, [Vec<u8>; 2]) {
        let (c_isn, c_clock, c_shift, c_capacity, c_data) = client;
        let (b_isn, b_clock, b_shift, b_capacity, b_data) = backend;
        let (r_isn, r_clock, r_shift) = listener;
        let (o_isn, o_clock, o_shift) = ours;
        // The client's shift is usually copied into the SYN to the backend.
        let o_shift = o_shift.unwrap_or(c_shift);
        let client = Start {
            flow: client_flow, isn: c_isn, peer_isn: r_isn, shift: c_shift, peer_shift: r_shift,
            clocks: clocks.then_some([c_clock, r_clock]), sack, capacity: c_capacity, data: c_data,
        };
        // The backend → the router.
        let backend = Start {
            flow: backend_flow.reversed(), isn: b_isn, peer_isn: o_isn, shift: b_shift, peer_shift: o_shift,
            clocks: clocks.then_some([b_clock, o_clock]), sack, capacity: b_capacity, data: b_data,
        };
        let to_backend = FlowTranslation {
            to: backend_flow,
            delta_seq: o_isn.wrapping_sub(c_isn), delta_ack: b_isn.wrapping_sub(r_isn),
            delta_tsval: o_clock.wrapping_sub(c_clock), delta_tsecr: b_clock.wrapping_sub(r_clock),
            shift_up: c_shift, shift_down: o_shift, pad: [0; 2],
        };
        let to_client = FlowTranslation {
            to: client_flow.reversed(),
            delta_seq: r_isn.wrapping_sub(b_isn), delta_ack: c_isn.wrapping_sub(o_isn),
            delta_tsval: r_clock.wrapping_sub(b_clock), delta_tsecr: c_clock.wrapping_sub(o_clock),
            shift_up: b_shift, shift_down: r_shift, pad: [0; 2],
        };
        let data = [client.data.clone(), backend.data.clone()];
        let ends = [End::new(client), End::new(backend)];
        (World { ends, translations: [to_backend, to_client], wire: VecDeque::new(), now: 0 }, data)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn both_streams_arrive_byte_by_byte(
        (mut world, data) in any_world(),
        choices in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        for choice in choices {
            world.turn(choice);
        }
        let mut turns = 0;
        while !world.ends.iter().all(End::all_sent_and_got) {
            turns += 1;
            prop_assert!(turns < TURNS, "no end");
            world.good_turn();
        }
        prop_assert_eq!(&world.ends[1].got, &data[0]);
        prop_assert_eq!(&world.ends[0].got, &data[1]);
    }
}
