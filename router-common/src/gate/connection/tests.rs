//! Who gives a connection's place back.

use core::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::maps::mapped;

fn key(port: u16) -> FlowKey {
    FlowKey { source: mapped([192, 0, 2, 7]), destination: [1; 16], source_port: port, destination_port: 443 }
}

#[test]
fn it_passes_from_a_socket_to_the_kernel_program_and_ends_once() {
    let word = AtomicU64::new(begun(&key(1), 0));
    assert!(!let_go(&word, &key(2), 0), "another connection's");
    assert!(hold(&word, &key(1), SOCKET) && hold(&word, &key(1), FLOW));
    assert!(!let_go(&word, &key(1), 0) && !let_go(&word, &key(1), SOCKET) && !let_go(&word, &key(1), SOCKET));
    assert!(let_go(&word, &key(1), FLOW));
    assert!(!let_go(&word, &key(1), FLOW) && !hold(&word, &key(1), SOCKET), "it has ended");
    let begun_again = AtomicU64::new(begun(&key(1), 0));
    assert!(let_go(&begun_again, &key(1), 0), "nothing has held it");
}

#[test]
fn what_the_agent_saw_ends_only_if_nothing_has_come_since() {
    let word = AtomicU64::new(begun(&key(1), FLOW));
    let seen = word.load(Ordering::SeqCst);
    assert!(hold(&word, &key(1), FLOW));
    assert!(!end(&word, seen), "a new connection with the same addresses and ports");
    let seen = word.load(Ordering::SeqCst);
    assert!(end(&word, seen) && !end(&word, seen));
    assert!(!end(&word, word.load(Ordering::SeqCst)));
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug)]
enum Step {
    Hold(u64),
    LetGo(u64),
    End,
}

proptest! {
    /// Against a model that has a set of holders.
    #[test]
    fn any_life_ends_once(
        first in 0..=3_u64,
        steps in proptest::collection::vec(
            prop_oneof![(1..=2_u64).prop_map(Step::Hold), (0..=2_u64).prop_map(Step::LetGo), Just(Step::End)],
            0..40,
        ),
    ) {
        let word = AtomicU64::new(begun(&key(9), first));
        let mut model = Some(first);
        let mut ends = 0;
        for step in steps {
            match step {
                Step::Hold(holder) => {
                    prop_assert_eq!(hold(&word, &key(9), holder), model.is_some());
                    model = model.map(|holders| holders | holder);
                }
                Step::LetGo(holder) => {
                    let left = model.map(|holders| holders & !holder);
                    let ended = let_go(&word, &key(9), holder);
                    prop_assert_eq!(ended, left == Some(0));
                    ends += u32::from(ended);
                    model = left.filter(|left| *left != 0);
                }
                Step::End => {
                    let ended = end(&word, word.load(Ordering::SeqCst));
                    prop_assert_eq!(ended, model.is_some());
                    ends += u32::from(ended);
                    model = None;
                }
            }
        }
        prop_assert_eq!(ends, u32::from(model.is_none()));
    }
}

#[test]
fn of_all_who_end_it_at_once_one_gives_the_place_back() {
    for round in 0..2000_u16 {
        let word = AtomicU64::new(begun(&key(round), SOCKET | FLOW));
        let ended: usize = thread::scope(|scope| {
            let enders: Vec<_> = [SOCKET, FLOW, SOCKET, FLOW]
                .map(|holder| {
                    scope.spawn({
                        let word = &word;
                        move || usize::from(let_go(word, &key(round), holder))
                    })
                })
                .into_iter()
                .collect();
            enders.into_iter().map(|ender| ender.join().unwrap()).sum()
        });
        assert_eq!(ended, 1);
    }
}
