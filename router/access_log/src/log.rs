//! Writes lines through a bounded queue and a thread, so that serving never waits for the reader of the log. A router
//! may have its own syslog server and format (`logging.access`).

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use arc_swap::ArcSwap;
use router_model::names::RouterName;
use router_table::policy::access_log::Syslog;
use router_table::policy::log_format::LogFormat;
use router_table::table::RoutingTable;
use tokio::sync::oneshot;

use super::counters::Counters;
use super::line::Line;
use super::log_writer;
use super::syslog::SyslogSender;

/// Most queued lines. When the queue is full, further lines are dropped and counted.
const QUEUE: usize = 16 * 1024;
/// Longest wait for the queued lines when a proxy or a data path stops.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Form of the access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum AccessLogForm {
    /// Events with the target `access` in the agent's own log.
    #[default]
    Log,
    /// JSON, one object per line, on standard output.
    Json,
    /// The format of HAProxy's `option httplog`, on standard output.
    Httplog,
    /// Disabled.
    Off,
}

/// The access log and the counters. All clones share their state. Each request has a clone, so threads that serve
/// requests clone from [`AccessLog::of_thread`].
#[derive(Clone, Debug)]
pub struct AccessLog(Arc<Handles>);

#[derive(Clone, Debug)]
struct Handles {
    counters: Arc<Counters>,
    queue: Option<SyncSender<LogMessage>>,
    dropped: Arc<AtomicU64>,
    /// Whether the default destination is enabled.
    is_own: bool,
    elsewhere: Arc<RouterOutput>,
}

/// Log settings of routers.
#[derive(Debug, Default)]
struct RouterOutput {
    routers: ArcSwap<HashMap<RouterName, RouterLog>>,
    /// Whether any router has its own server.
    any_server: AtomicBool,
}

/// Destination and format of a router that has its own.
#[derive(Clone, Debug)]
struct RouterLog {
    syslog: Option<Syslog>,
    format: Option<LogFormat>,
}

#[derive(Debug)]
enum LogMessage {
    Line(Box<Line>),
    Flush(oneshot::Sender<()>),
}

impl AccessLog {
    /// Starts the writer thread, unless the log is disabled.
    pub fn start(form: AccessLogForm, counters: Arc<Counters>) -> Self {
        let dropped = Arc::new(AtomicU64::new(0));
        let elsewhere = Arc::<RouterOutput>::default();
        let is_own = match form {
            AccessLogForm::Log => tracing::enabled!(target: "access", tracing::Level::INFO),
            AccessLogForm::Json | AccessLogForm::Httplog => true,
            AccessLogForm::Off => false,
        };
        let log = |queue| {
            let (dropped, elsewhere) = (Arc::clone(&dropped), Arc::clone(&elsewhere));
            AccessLog(Arc::new(Handles { counters, queue, dropped, is_own, elsewhere }))
        };
        let (queue, lines) = sync_channel(QUEUE);
        let writer = QueueWriter {
            form,
            dropped: Arc::clone(&dropped),
            out: Vec::new(),
            elsewhere: Arc::clone(&elsewhere),
            sender: SyslogSender::default(),
        };
        match thread::Builder::new().name("access-log".to_owned()).spawn(move || writer.run(&lines)) {
            Ok(_) => log(Some(queue)),
            Err(error) => {
                tracing::error!(%error, "cannot start the access log's thread; the access log is disabled");
                log(None)
            }
        }
    }

    /// The same log with a reference count of its own: threads that share a count contend for its cache line.
    pub fn of_thread(&self) -> Self {
        AccessLog(Arc::new(Handles::clone(&self.0)))
    }

    /// A log without a writer, with room for `lines` lines.
    #[cfg(test)]
    pub fn with_queue(room: usize) -> (Self, TestQueue) {
        let (queue, lines) = sync_channel(room);
        let handles = Handles {
            counters: Arc::default(),
            queue: Some(queue),
            dropped: Arc::default(),
            is_own: true,
            elsewhere: Arc::default(),
        };
        (AccessLog(Arc::new(handles)), TestQueue(lines))
    }

    /// Whether lines are written; if not, their values need not be collected.
    pub fn is_wanted(&self) -> bool {
        self.0.queue.is_some() && (self.0.is_own || self.0.elsewhere.any_server.load(Ordering::Relaxed))
    }

    /// Applies the routers' log settings of this table.
    pub fn follow(&self, table: &RoutingTable) {
        let mut routers = HashMap::new();
        for router in &table.routers {
            let (syslog, format) = (router.policy.log.syslog, router.policy.log.format.clone());
            if syslog.is_some() || format.is_some() {
                routers.insert(router.name.clone(), RouterLog { syslog, format });
            }
        }
        let any_server = routers.values().any(|router| router.syslog.is_some());
        self.0.elsewhere.routers.store(Arc::new(routers));
        self.0.elsewhere.any_server.store(any_server, Ordering::Relaxed);
    }

    /// Counters of routes.
    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// Number of dropped lines.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Queues a line, or drops it if the queue is full.
    pub fn write(&self, line: Line) {
        let Some(queue) = &self.0.queue else { return };
        if queue.try_send(LogMessage::Line(Box::new(line))).is_err() {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until the queued lines were written, for at most `LAST_WAIT`; not at all when the queue is full.
    pub async fn flush(&self) {
        if let Some(mark) = self.mark() {
            mark.reached(LAST_WAIT).await;
        }
    }

    /// Marks the current end of the queue; `None` if there is no writer or the queue is full.
    pub fn mark(&self) -> Option<QueueMark> {
        let (done, is_done) = oneshot::channel();
        self.0.queue.as_ref()?.try_send(LogMessage::Flush(done)).ok()?;
        Some(QueueMark(is_done))
    }
}

/// A position in the queue.
#[derive(Debug)]
pub struct QueueMark(oneshot::Receiver<()>);

impl QueueMark {
    /// Waits until all earlier lines were written, at most for this long.
    pub async fn reached(self, longest: Duration) {
        // An error means that the thread has ended, and its lines are lost.
        let _ = tokio::time::timeout(longest, self.0).await;
    }
}

/// Lines that were not written.
#[cfg(test)]
pub struct TestQueue(Receiver<LogMessage>);

#[cfg(test)]
impl TestQueue {
    /// Removes the lines, and returns their number.
    pub fn len(&self) -> usize {
        self.0.try_iter().count()
    }
}

struct QueueWriter {
    form: AccessLogForm,
    dropped: Arc<AtomicU64>,
    out: Vec<u8>,
    elsewhere: Arc<RouterOutput>,
    sender: SyslogSender,
}

impl QueueWriter {
    /// Writes until all senders are dropped.
    fn run(mut self, lines: &Receiver<LogMessage>) {
        let mut reported = 0;
        log_writer::gather();
        loop {
            let message = match lines.try_recv() {
                Ok(message) => message,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    reported = self.log_dropped(reported);
                    self.flush();
                    match lines.recv() {
                        Ok(message) => message,
                        Err(_) => break,
                    }
                }
            };
            match message {
                LogMessage::Line(line) => self.line(&line),
                LogMessage::Flush(done) => {
                    self.flush();
                    // The receiver may have stopped waiting.
                    let _ = done.send(());
                }
            }
        }
        self.flush();
    }

    fn line(&mut self, line: &Line) {
        let routers = self.elsewhere.routers.load();
        let of_router = routers.get(&line.router);
        // Formats apply to requests; relayed connections lack most of their values.
        let format = of_router.and_then(|router| router.format.as_ref()).filter(|_| line.method.is_some());
        if let Some(server) = of_router.and_then(|router| router.syslog) {
            let text = format.map_or_else(|| line.httplog(), |format| line.formatted(format));
            if self.sender.send(&server, line.ended(), &text).is_err() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
            return;
        }
        let text = match (self.form, format) {
            (AccessLogForm::Off, _) => return,
            (AccessLogForm::Log, None) => return line.emit(),
            (AccessLogForm::Log, Some(format)) => {
                let text = line.formatted(format);
                return tracing::info!(target: "access", router = %line.router, line = text);
            }
            (_, Some(format)) => line.formatted(format),
            (AccessLogForm::Json, None) => line.json(),
            (AccessLogForm::Httplog, None) => line.httplog(),
        };
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(b'\n');
        if self.out.len() >= 64 * 1024 {
            self.flush();
        }
    }

    fn flush(&mut self) {
        log_writer::write_out();
        if !self.out.is_empty() {
            let mut out = io::stdout().lock();
            // An error means that the reader has closed the pipe.
            let _ = out.write_all(&self.out).and_then(|()| out.flush());
            self.out.clear();
        }
    }

    /// Logs how many lines were dropped since the last message.
    fn log_dropped(&self, reported: u64) -> u64 {
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > reported {
            tracing::warn!(
                lines = dropped - reported,
                "access log lines were dropped: the reader is too slow, or sending failed"
            );
        }
        dropped
    }
}
