//! Writes the agent's own log to standard error, event by event. Threads with many events write several at a time.

use std::cell::RefCell;
use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

/// Most bytes of one write: writes to a pipe up to this size are atomic (`PIPE_BUF`, POSIX `<limits.h>`; the keeper and
/// two agents may write to the same pipe).
const BATCH: usize = 4096;

thread_local! {
    /// Gathered events; `None` in threads that do not gather.
    static WAITING: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// The writer for `tracing_subscriber`.
#[derive(Clone, Copy, Debug)]
pub struct LogWriter;

/// Gathers this thread's events until [`write_out`], or until they fill a write.
pub fn gather() {
    WAITING.set(Some(Vec::with_capacity(BATCH)));
}

/// Writes this thread's gathered events.
pub fn write_out() {
    WAITING.with_borrow_mut(|waiting| waiting.as_mut().map(|waiting| put(waiting, &mut io::stderr().lock())));
}

fn put(waiting: &mut Vec<u8>, out: &mut impl Write) {
    if !waiting.is_empty() {
        // An error means that the reader has closed the pipe.
        let _ = out.write_all(waiting);
        waiting.clear();
    }
}

/// Gathers an event; first writes earlier ones if it does not fit beside them.
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
    /// Receives a complete event.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let waits = WAITING.try_with(|waiting| {
            let mut waiting = waiting.borrow_mut();
            waiting.as_mut().map(|waiting| add(waiting, event, &mut io::stderr().lock())).is_some()
        });
        // The thread's storage is already destroyed.
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
