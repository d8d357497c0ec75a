//! The session store: lifetime, bound, and `Debug` without secrets.

use super::*;

#[test]
fn sessions_are_kept_for_their_lifetime() {
    let (sessions, start) = (Sessions::default(), Instant::now());
    sessions.put_at(b"one".to_vec(), b"secret".to_vec(), start);
    let last = start + LIFETIME - Duration::from_secs(1);
    assert_eq!(sessions.get_at(b"one", last), Some(b"secret".to_vec()));
    assert_eq!(sessions.get_at(b"one", start + LIFETIME), None);
    assert_eq!(sessions.get_at(b"two", start), None);
    assert_eq!(sessions.take(b"one"), Some(b"secret".to_vec()));
    assert_eq!(sessions.get_at(b"one", start), None);
}

#[test]
fn there_is_an_end_to_their_number() {
    let (sessions, start) = (Sessions::default(), Instant::now());
    for number in 0..3 * CAPACITY {
        sessions.put_at(number.to_be_bytes().to_vec(), Vec::new(), start);
    }
    let kept = sessions.kept();
    assert!(kept.by_id.len() <= CAPACITY && kept.ids.len() <= CAPACITY, "{} {}", kept.by_id.len(), kept.ids.len());
    assert!(kept.by_id.contains_key((3 * CAPACITY - 1).to_be_bytes().as_slice()));
    drop(kept);
    sessions.put_at(b"later".to_vec(), Vec::new(), start + LIFETIME);
    assert_eq!(sessions.kept().by_id.len(), 1, "what is over goes as well");
}

#[test]
fn an_id_that_is_put_again_lives_on() {
    let (sessions, start) = (Sessions::default(), Instant::now());
    sessions.put_at(b"id".to_vec(), b"old".to_vec(), start);
    let again = start + LIFETIME / 2;
    sessions.put_at(b"id".to_vec(), b"new".to_vec(), again);
    sessions.put_at(b"other".to_vec(), Vec::new(), start + LIFETIME);
    assert_eq!(sessions.get_at(b"id", start + LIFETIME), Some(b"new".to_vec()));
}

#[test]
fn nothing_of_them_is_printed() {
    let sessions = Sessions::default();
    sessions.put_at(b"id".to_vec(), b"secret".to_vec(), Instant::now());
    assert_eq!(format!("{sessions:?}"), "Sessions");
}
