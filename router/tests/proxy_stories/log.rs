//! The access log of all proxies of this process, to look lines up in.

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

/// Begins to collect; once per process.
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

/// The access log's line whose field has this value, as soon as there is one. Tests use names that are theirs alone.
pub async fn line(field: &str, value: &str) -> Value {
    line_where(&format!("a log line with {field}={value}"), |line| line[field] == value).await
}

/// The first line that is like that, as soon as there is one.
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
