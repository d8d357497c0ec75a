//! Where the agent's own log goes: standard error, an event at a time; those of a thread that has many, several at a time.

use std::cell::RefCell;
use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

/// Bytes that are written at once: a pipe takes so many without a part of another process's between them (`PIPE_BUF`,
/// POSIX `<limits.h>`; the keeper and two agents may write to one).
const BATCH: usize = 4096;

thread_local! {
    /// Whole events; `None` in threads whose events do not wait.
    static WAITING: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// The writer for `tracing_subscriber`.
#[derive(Clone, Copy, Debug)]
pub struct LogWriter;

/// Has this thread's events wait for one another until [`write_out`], or until they fill a write.
pub fn gather() {
    WAITING.set(Some(Vec::with_capacity(BATCH)));
}

/// Writes this thread's events that wait.
pub fn write_out() {
    WAITING.with_borrow_mut(|waiting| waiting.as_mut().map(|waiting| put(waiting, &mut io::stderr().lock())));
}

fn put(waiting: &mut Vec<u8>, out: &mut impl Write) {
    if !waiting.is_empty() {
        // Whoever has closed the pipe does not read any more.
        let _ = out.write_all(waiting);
        waiting.clear();
    }
}

/// Has an event wait, and writes those before it when there is no room for it beside them.
fn add(waiting: &mut Vec<u8>, event: &[u8], out: &mut impl Write) {
    if waiting.len() + event.len() > BATCH {
        put(waiting, out);
    }
    waiting.extend_from_slice(event);
}

impl MakeWriter<'_> for LogWriter {
    type Writer = LogWriter;

    fn make_writer(&self) -> LogWriter {
        LogWriter
    }
}

impl Write for LogWriter {
    /// Takes a whole event.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let waits = WAITING.try_with(|waiting| {
            let mut waiting = waiting.borrow_mut();
            waiting.as_mut().map(|waiting| add(waiting, event, &mut io::stderr().lock())).is_some()
        });
        // A thread at its end has no place for them any more.
        if waits == Ok(true) {
            return Ok(event.len());
        }
        io::stderr().lock().write_all(event).map(|()| event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers each write.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn events_that_wait_are_written_whole_and_as_many_as_a_pipe_takes_at_once() {
        let events: Vec<Vec<u8>> =
            [300, 4000, 96, 1, 5000, 10].iter().zip(b'a'..).map(|(&length, letter)| vec![letter; length]).collect();
        let (mut waiting, mut writes) = (Vec::new(), Writes::default());
        events.iter().for_each(|event| add(&mut waiting, event, &mut writes));
        put(&mut waiting, &mut writes);
        put(&mut waiting, &mut writes);
        let lengths: Vec<usize> = writes.0.iter().map(Vec::len).collect();
        assert_eq!(lengths, [300, 4096, 1, 5000, 10]);
        assert_eq!(writes.0.concat(), events.concat());
    }
}
