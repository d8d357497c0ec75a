//! The access log of all proxies of this process, for tests to search.

use std::io::{self, Write};
use std::sync::{Mutex, OnceLock};

use serde_json::Value;
use tracing_subscriber::EnvFilter;

use crate::tables::eventually;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Sink;

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts capturing; once per process.
pub fn capture() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_env_filter(EnvFilter::new("access=info,router_proxy::http::mirror=warn"))
            .with_writer(|| Sink)
            .init();
    });
}

/// Waits for the access log's line with this value of the field. Tests use names of their own.
pub async fn line(field: &str, value: &str) -> Value {
    line_where(&format!("a log line with {field}={value}"), |line| line[field] == value).await
}

/// Waits for the first line that matches.
pub async fn line_where(what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut found = Value::Null;
    eventually(what, async || {
        let text = String::from_utf8(LINES.lock().unwrap().clone()).unwrap();
        let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        match lines.find(&wanted) {
            Some(line) => {
                found = line;
                true
            }
            None => false,
        }
    })
    .await;
    found
}
