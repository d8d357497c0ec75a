//! Printing the log lines of the kernel programs.

use std::time::Duration;

use aya::Ebpf;
use aya_log::EbpfLogger;
use log::{Level, Log, Metadata, Record};
use tokio::time::{MissedTickBehavior, interval};

use super::object::LOG_TARGET;

/// Interval of reading the ring, which has room for some 128 lines.
const READ: Duration = Duration::from_millis(10);

/// Prints the log lines of a loaded object until it is dropped; `None` if the object has none.
pub fn printing(object: &mut Ebpf) -> Option<impl Future<Output = ()> + use<>> {
    let mut lines = EbpfLogger::init_with_logger(object, Printer).ok()?;
    Some(async move {
        let mut read = interval(READ);
        read.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            read.tick().await;
            lines.flush();
        }
    })
}

/// Forwards a line as an event of the agent's own log.
struct Printer;

impl Log for Printer {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = text(&record.args().to_string());
        match record.level() {
            Level::Trace => tracing::trace!(target: LOG_TARGET, "{line}"),
            _ => tracing::debug!(target: LOG_TARGET, "{line}"),
        }
    }

    fn flush(&self) {}
}

/// A line without the zeros that its texts are padded with.
fn text(line: &str) -> String {
    line.replace('\0', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_behind_texts_are_dropped() {
        assert_eq!(
            text("pass unknown-sni\0\0 host=a.example\0\0\0 route=0"),
            "pass unknown-sni host=a.example route=0"
        );
    }
}
