//! Where lines go: through a bounded queue to a thread that writes them, so that nobody who serves waits for whoever
//! reads the log.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use super::line::Line;
use crate::proxy::counters::Counters;

/// Most lines that wait. Those that come when it is full are dropped, and counted.
const QUEUE: usize = 16 * 1024;
/// Longest wait for the lines of a proxy that has stopped.
const FLUSH: Duration = Duration::from_secs(2);

/// How the access log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum AccessLogForm {
    /// Events of the agent's own log, named `access`.
    #[default]
    Log,
    /// One JSON object a line, on standard output.
    Json,
    /// In the order of HAProxy's `option httplog`, on standard output.
    Httplog,
    /// Not at all.
    Off,
}

/// The access log and the counters. All clones are one.
#[derive(Clone, Debug)]
pub struct AccessLog {
    counters: Arc<Counters>,
    queue: Option<SyncSender<Message>>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Message {
    Line(Box<Line>),
    Flush(oneshot::Sender<()>),
}

impl AccessLog {
    /// Starts the thread that writes, if there is anything to write.
    pub fn start(form: AccessLogForm, counters: Arc<Counters>) -> Self {
        let dropped = Arc::new(AtomicU64::new(0));
        let log = |queue| AccessLog { counters, queue, dropped: Arc::clone(&dropped) };
        let is_wanted = match form {
            AccessLogForm::Log => tracing::enabled!(target: "access", tracing::Level::INFO),
            AccessLogForm::Json | AccessLogForm::Httplog => true,
            AccessLogForm::Off => false,
        };
        if !is_wanted {
            return log(None);
        }
        let (queue, lines) = sync_channel(QUEUE);
        let writer = Writer { form, dropped: Arc::clone(&dropped), out: Vec::new() };
        match thread::Builder::new().name("access-log".to_owned()).spawn(move || writer.run(&lines)) {
            Ok(_) => log(Some(queue)),
            Err(error) => {
                tracing::error!(%error, "there is no thread for the access log; it is not written");
                log(None)
            }
        }
    }

    /// A log that nobody writes, with room for so many lines.
    #[cfg(test)]
    pub fn with_queue(room: usize) -> (Self, TestQueue) {
        let (queue, lines) = sync_channel(room);
        (AccessLog { counters: Arc::default(), queue: Some(queue), dropped: Arc::default() }, TestQueue(lines))
    }

    /// Whether lines are written at all: if not, nothing has to be gathered for them.
    pub fn is_wanted(&self) -> bool {
        self.queue.is_some()
    }

    /// What each route has served.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Lines that nobody took in time.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes a line, now or later, or never when too many wait already.
    pub fn write(&self, line: Line) {
        let Some(queue) = &self.queue else { return };
        if queue.try_send(Message::Line(Box::new(line))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until the lines that there are have been written, within bounds.
    pub async fn flush(&self) {
        let Some(queue) = &self.queue else { return };
        let (done, is_done) = oneshot::channel();
        if queue.try_send(Message::Flush(done)).is_ok() {
            // An error says that the thread is gone, and with it the lines.
            let _ = tokio::time::timeout(FLUSH, is_done).await;
        }
    }
}

/// Lines that were not written.
#[cfg(test)]
pub struct TestQueue(Receiver<Message>);

#[cfg(test)]
impl TestQueue {
    /// How many there are; they are taken.
    pub fn len(&self) -> usize {
        self.0.try_iter().count()
    }
}

struct Writer {
    form: AccessLogForm,
    dropped: Arc<AtomicU64>,
    out: Vec<u8>,
}

impl Writer {
    /// Writes until there is nobody left to send.
    fn run(mut self, lines: &Receiver<Message>) {
        let mut told = 0;
        loop {
            let message = match lines.try_recv() {
                Ok(message) => message,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    self.flush();
                    told = self.tell_dropped(told);
                    match lines.recv() {
                        Ok(message) => message,
                        Err(_) => break,
                    }
                }
            };
            match message {
                Message::Line(line) => self.line(&line),
                Message::Flush(done) => {
                    self.flush();
                    // Who asked may not wait any more.
                    let _ = done.send(());
                }
            }
        }
        self.flush();
    }

    fn line(&mut self, line: &Line) {
        let text = match self.form {
            AccessLogForm::Off => return,
            AccessLogForm::Log => return line.emit(),
            AccessLogForm::Json => line.json(),
            AccessLogForm::Httplog => line.httplog(),
        };
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(b'\n');
        if self.out.len() >= 64 * 1024 {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.out.is_empty() {
            let mut out = io::stdout().lock();
            // Whoever has closed the pipe does not read any more.
            let _ = out.write_all(&self.out).and_then(|()| out.flush());
            self.out.clear();
        }
    }

    /// Says in the agent's log when lines were lost since it was last said.
    fn tell_dropped(&self, told: u64) -> u64 {
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > told {
            tracing::warn!(
                lines = dropped - told,
                "lines of the access log were dropped: they are not taken fast enough"
            );
        }
        dropped
    }
}
