//! The budget for HTTP/2 frames: its use and its refill.

use std::time::Duration;

use super::*;

const RST_STREAM: u8 = 3;
const WINDOW_UPDATE: u8 = 8;

fn frame(kind: u8, length: u8) -> Vec<u8> {
    of_stream(kind, 0, 1, &vec![0; length.into()])
}

fn of_stream(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream][..], payload].concat()
}

/// Number of frames of this kind that are accepted in a row.
fn taken(meter: &mut FrameMeter, frame: &[u8]) -> usize {
    (0..5000).take_while(|_| meter.receive(frame, 0).is_ok()).count()
}

fn after_preface() -> FrameMeter {
    let mut meter = FrameMeter::default();
    // Byte by byte, with the first SETTINGS.
    let begun = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 6)].concat();
    begun.iter().for_each(|byte| meter.receive(&[*byte], 0).unwrap());
    meter
}

/// A meter without budget.
fn drained() -> FrameMeter {
    let mut meter = after_preface();
    (1..MOST).for_each(|_| meter.receive(&frame(PING, 8), 0).unwrap());
    meter
}

#[test]
fn frames_about_nothing_are_bounded() {
    for (kind, length) in [(2, 5), (RST_STREAM, 4), (4, 0), (6, 8), (8, 4), (0, 0), (9, 0)] {
        assert_eq!(taken(&mut after_preface(), &frame(kind, length)) as u64, MOST - 1, "{kind}");
    }
    for (kind, length) in [(0, 5), (1, 5), (9, 1)] {
        assert_eq!(taken(&mut after_preface(), &frame(kind, length)), 5000, "{kind}");
    }
}

#[test]
fn padding_is_nothing() {
    for payload in [&[0][..], &[3, 0, 0, 0], &[200, 0]] {
        let nothing = of_stream(DATA, PADDED, 1, payload);
        assert_eq!(taken(&mut after_preface(), &nothing) as u64, MOST - 1, "{payload:?}");
        let mut meter = after_preface();
        for _ in 0..MOST - 1 {
            nothing.iter().for_each(|byte| meter.receive(&[*byte], 0).unwrap());
        }
        assert!(meter.receive(&nothing, 0).is_err(), "{payload:?}, byte by byte");
    }
    assert_eq!(taken(&mut after_preface(), &of_stream(DATA, PADDED, 1, &[2, b'x', 0, 0])), 5000);
}

#[test]
fn requests_responses_and_time_earn_more() {
    let mut meter = drained();
    meter.receive(&frame(HEADERS, 20), 0).unwrap();
    assert_eq!(taken(&mut meter, &frame(PING, 8)), 8);
    let mut meter = drained();
    meter.send(&of_stream(DATA, 0, 1, &[0; 200]).repeat(15));
    assert_eq!(taken(&mut meter, &frame(WINDOW_UPDATE, 4)), 3);
    let mut meter = drained();
    meter.since = Instant::now().checked_sub(Duration::from_secs(5));
    assert_eq!(taken(&mut meter, &frame(PING, 8)), 50);
    let mut meter = drained();
    [frame(SETTINGS, 6), frame(PING, 8)].iter().for_each(|frame| meter.send(frame));
    assert_eq!(taken(&mut meter, &of_stream(PING, ACK, 0, &[0; 8])), 2);
}

#[test]
fn what_answers_a_response_is_good_however_small_its_parts_are() {
    let mut meter = drained();
    let answer = [frame(WINDOW_UPDATE, 4), frame(WINDOW_UPDATE, 4), frame(PING, 8)].concat();
    for _ in 0..10_000 {
        meter.send(&of_stream(DATA, 0, 1, &[0; 6]));
        meter.receive(&answer, 1).unwrap();
        // The router's acknowledgement of the PING.
        meter.send(&of_stream(PING, ACK, 0, &[0; 8]));
    }
    // The budget does not exceed its maximum.
    assert!(taken(&mut meter, &frame(PING, 8)) as u64 <= MOST);
}

#[test]
fn frames_that_the_client_has_cut_small_earn_it_nothing() {
    let mut meter = after_preface();
    let dribbled = (0..5000).take_while(|_| {
        meter.send(&of_stream(DATA, 0, 1, &[0]));
        meter.receive(&frame(WINDOW_UPDATE, 4), 0).is_ok()
    });
    assert!(dribbled.count() < 1000);
}

#[test]
fn the_answers_to_a_flood_earn_it_nothing() {
    let mut meter = after_preface();
    let flood = (0..5000).take_while(|_| {
        meter.send(&of_stream(PING, ACK, 0, &[0; 8]));
        meter.receive(&frame(PING, 8), 0).is_ok()
    });
    assert!(flood.count() < 1000);
}

#[test]
fn streams_of_bytes_that_were_not_good_do_not_count() {
    let mut meter = after_preface();
    assert_eq!(meter.last_stream(), 0);
    meter.receive(&[of_stream(HEADERS, 0, 5, b"x"), of_stream(HEADERS, 0, 3, b"x")].concat(), 0).unwrap();
    let flood = frame(PING, 8).repeat(1000);
    meter.receive(&[of_stream(HEADERS, 0, 7, b"x"), flood].concat(), 0).unwrap_err();
    assert_eq!(meter.last_stream(), 5);
}

#[test]
fn a_frame_that_has_begun_is_known_to_its_last_byte() {
    let bytes = [of_stream(DATA, 0, 1, b"abc"), of_stream(SETTINGS, ACK, 0, b"")].concat();
    let mut meter = after_preface();
    for (at, byte) in bytes.iter().enumerate() {
        let expected = match at {
            0 | 12 => 0,
            1..9 => 9 - at,
            9..12 => 12 - at,
            _ => 21 - at,
        };
        assert_eq!(meter.of_begun_frame(100), expected, "at {at}");
        assert_eq!(meter.of_begun_frame(1), expected.min(1), "at {at}");
        meter.send(&[*byte]);
    }
    assert_eq!(meter.of_begun_frame(100), 0);
}
