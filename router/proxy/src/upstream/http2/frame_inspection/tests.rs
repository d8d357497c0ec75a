//! Observed frames, however they are split.

use std::sync::atomic::Ordering;

use super::super::connection_view::{FIRST_WINDOW, SMALL, STARVED};
use super::super::frames::{ACK, DATA, END_STREAM, GOAWAY, PADDED, SETTINGS, WINDOW_UPDATE};
use super::*;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Observations of these bytes, received in parts of this size, and the bytes that h2 gets.
fn received(bytes: &[u8], part: usize) -> (Arc<ConnectionView>, Vec<u8>) {
    let (mut watched, mut bytes) = (InspectedConnection::new((), Arc::default()), bytes.to_vec());
    bytes.chunks_mut(part).for_each(|part| watched.received(part));
    (watched.seen, bytes)
}

#[test]
fn frames_are_found_however_they_are_cut() {
    let settings = [&[0, 3, 0, 0, 0, 100][..], &[0, 6, 0, 0, 0x20, 0], &[0, 4, 0, 1, 0, 0]].concat();
    let bytes = [
        frame(SETTINGS, 0, 0, &settings),
        frame(SETTINGS, ACK, 0, &[]),
        frame(WINDOW_UPDATE, 0, 0, &1_000_u32.to_be_bytes()),
        frame(WINDOW_UPDATE, 0, 1, &7_u32.to_be_bytes()),
        frame(1, 4, 1, &[0x88; 300]),
        frame(DATA, 0, 1, &[0; SMALL]),
        frame(DATA, 0, 1, &[0; SMALL - 1]),
        frame(DATA, 0, 3, b"x"),
        frame(DATA, 0, 3, b""),
        frame(DATA, END_STREAM, 3, b""),
        frame(DATA, END_STREAM, 1, b"x"),
        frame(DATA, PADDED, 1, &[SMALL as u8; SMALL + 1]),
        frame(9, 0, 5, &[0; 20_000]),
    ]
    .concat();
    for part in [1, 2, 3, 8, 9, 10, 100, bytes.len()] {
        let (seen, _) = received(&bytes, part);
        assert_eq!((seen.small(), seen.max_fields(), seen.leaves()), (5, Some(8192), false), "{part}");
        assert_eq!(seen.window.load(Ordering::Relaxed), FIRST_WINDOW + 1_000);
    }
    assert!(received(&frame(GOAWAY, 0, 0, &[0; 8]), 4).0.leaves());
}

#[test]
fn frames_that_say_nothing_are_hidden_and_no_others() {
    let bytes =
        [frame(DATA, 0, 1, b""), frame(DATA, END_STREAM, 3, b""), frame(DATA, 0, 5, b"\0\0\0\0\0\0\0\0\0\0")].concat();
    let hidden = [frame(UNKNOWN, 0, 1, b"").as_slice(), &bytes[9..]].concat();
    for cut in 0..bytes.len() {
        // h2 has received the type already, and counts one frame.
        let expected = if cut == 4 { bytes.clone() } else { hidden.clone() };
        let (mut watched, mut bytes) = (InspectedConnection::new((), Arc::default()), bytes.clone());
        let (first, second) = bytes.split_at_mut(cut);
        watched.received(first);
        watched.received(second);
        assert_eq!(bytes, expected, "{cut}");
    }
}

#[test]
fn what_is_not_as_it_should_be_is_passed_over() {
    let long = [&[0, 6, 0, 0, 0, 1][..]; 1_000].concat();
    for bytes in [
        frame(SETTINGS, 0, 0, &long),
        frame(SETTINGS, 0, 1, &[0, 6, 0, 0, 0, 1]),
        frame(SETTINGS, 0, 0, &[0, 6, 0]),
        frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1]),
        [&[255; 9][..], &[0; 50_000]].concat(),
    ] {
        let (seen, _) = received(&bytes, 7);
        assert_eq!((seen.max_fields(), seen.window.load(Ordering::Relaxed)), (None, FIRST_WINDOW));
    }
}

#[test]
fn small_frames_are_those_not_yet_consumed() {
    let (seen, _) = received(&frame(DATA, 0, 1, b"x").repeat(5), 64);
    seen.took(SMALL);
    assert_eq!(seen.small(), 5);
    seen.took(1);
    assert_eq!(seen.small(), 4);
    seen.took_all();
    seen.took(1);
    assert_eq!(seen.small(), 0);
}

#[tokio::test]
async fn a_connection_whose_window_stays_shut_is_starved() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let (near, mut far) = tokio::io::duplex(1 << 20);
    let seen = Arc::<ConnectionView>::default();
    let mut near = InspectedConnection::new(near, Arc::clone(&seen));
    near.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let data = frame(DATA, 0, 1, &[0; 13_107]);
    for _ in 0..4 {
        near.write_all(&data).await.unwrap();
    }
    tokio::time::sleep(2 * STARVED).await;
    assert!(!seen.is_starved(), "there is some left");
    let (first, second) = data.split_at(5_000);
    let parts = [IoSlice::new(first), IoSlice::new(second)];
    assert_eq!(near.write_vectored(&parts).await.unwrap(), data.len());
    assert!(!seen.is_starved(), "it may be a matter of milliseconds");
    tokio::time::sleep(2 * STARVED).await;
    assert!(seen.is_starved());
    far.write_all(&frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes())).await.unwrap();
    assert_eq!(near.read(&mut [0; 64]).await.unwrap(), 13);
    assert!(!seen.is_starved());
}
