//! `STATE/keep.sock`: one line of request, one line of response.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

const UPGRADE: &str = "upgrade";
const REQUEST: Duration = Duration::from_secs(5);
const MOST_BYTES: u64 = 4096;

/// Result of an upgrade: a message.
pub type UpgradeResult = Result<String, String>;

/// Where to send the result of an upgrade.
pub type UpgradeReply = oneshot::Sender<UpgradeResult>;

/// The socket of a state folder.
pub fn socket(state: &Path) -> PathBuf {
    state.join("keep.sock")
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No keeper responds.
    #[error("no keeper answers on {0}: is `sluice keep -- run …` running with this --state?")]
    NoKeeper(PathBuf),
    /// The connection was closed.
    #[error("the keeper ended before the upgrade was done")]
    Gone(#[source] io::Error),
}

/// Requests an upgrade from the keeper of a state folder, and waits for the result.
///
/// # Errors
/// [`ControlError`] if there is none.
pub async fn upgrade(state: &Path) -> Result<UpgradeResult, ControlError> {
    let path = socket(state);
    let stream = UnixStream::connect(&path).await.map_err(|_| ControlError::NoKeeper(path))?;
    let mut stream = BufReader::new(stream);
    stream.write_all(format!("{UPGRADE}\n").as_bytes()).await.map_err(ControlError::Gone)?;
    let mut line = String::new();
    stream.read_line(&mut line).await.map_err(ControlError::Gone)?;
    match line.trim_end().split_once(' ') {
        Some(("ok", text)) => Ok(Ok(text.to_owned())),
        Some(("error", text)) => Ok(Err(text.to_owned())),
        _ => Err(ControlError::Gone(io::ErrorKind::UnexpectedEof.into())),
    }
}

/// Forwards requests until the task is dropped.
pub(super) async fn serve(listener: UnixListener, requests: mpsc::UnboundedSender<UpgradeReply>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(answer(stream, requests.clone()));
            }
            // Out of descriptors: retrying at once does not help.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(stream: UnixStream, requests: mpsc::UnboundedSender<UpgradeReply>) {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(read.take(MOST_BYTES));
    if !matches!(tokio::time::timeout(REQUEST, reader.read_line(&mut line)).await, Ok(Ok(_))) {
        return;
    }
    let outcome = if line.trim_end() == UPGRADE {
        let (asker, outcome) = oneshot::channel();
        let _ = requests.send(asker);
        outcome.await.unwrap_or_else(|_| Err("the keeper is ending".to_owned()))
    } else {
        Err("unknown request; `upgrade` is the only one".to_owned())
    };
    let (word, text) = match &outcome {
        Ok(text) => ("ok", text),
        Err(text) => ("error", text),
    };
    // The client may have disconnected.
    let _ = write.write_all(format!("{word} {}\n", text.replace('\n', " ")).as_bytes()).await;
}
