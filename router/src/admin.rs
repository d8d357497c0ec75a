//! Admin API of the running agent: JSON over HTTP on a Unix socket in the state folder.
//!
//! Read-only; the socket's mode is 0600. `curl --unix-socket STATE/admin.sock http://sluice/routes` returns what
//! `sluice get routes -o json` shows.
mod age;
mod explained;
mod views;

use std::convert::Infallible;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use router_translate::explain::explanation::Explanation;
use router_translate::explain::query::Query;
use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};

pub use views::{View, Views};

/// Maximum size of a response, in bytes: some 100,000 routes.
const MAX_ANSWER: usize = 256 << 20;
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Path of the socket in a state folder.
pub fn socket(state: &Path) -> PathBuf {
    state.join("admin.sock")
}

/// Why the socket cannot be opened, or did not respond.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// Another agent responds on it.
    #[error("another agent is running on {0}; give this one its own --state and --instance")]
    Taken(PathBuf),
    /// A system call failed.
    #[error("{path}: {error}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// No agent responds.
    #[error("no agent answers on {0}: is `sluice run` running with this --state?")]
    NoAgent(PathBuf),
    /// The response is invalid.
    #[error("the agent's answer cannot be read: {0}")]
    Answer(String),
}

/// Opens the socket. A stale one, on which no agent responds, is replaced.
///
/// # Errors
/// [`AdminError::Taken`] if another agent runs on this folder.
pub fn bind(state: &Path) -> Result<UnixListener, AdminError> {
    bind_at(socket(state))
}

/// Opens a temporary socket, for an agent that will replace the current one.
///
/// # Errors
/// [`AdminError::Io`].
pub fn bind_beside(state: &Path) -> Result<UnixListener, AdminError> {
    bind_at(beside(state))
}

/// Renames the socket of [`bind_beside`] to the regular path.
///
/// # Errors
/// [`AdminError::Io`].
pub fn take_over(state: &Path) -> Result<(), AdminError> {
    fs::rename(beside(state), socket(state)).map_err(|error| AdminError::Io { path: socket(state), error })
}

fn beside(state: &Path) -> PathBuf {
    state.join("admin.sock.new")
}

/// Opens a socket with mode 0600, replacing a stale one.
pub(crate) fn bind_at(path: PathBuf) -> Result<UnixListener, AdminError> {
    let fail = |error| AdminError::Io { path: path.clone(), error };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    if std::os::unix::net::UnixStream::connect(&path).is_ok() {
        return Err(AdminError::Taken(path));
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    let listener = UnixListener::bind(&path).map_err(fail)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(fail)?;
    Ok(listener)
}

/// Serves requests until the task is dropped.
pub async fn serve(listener: UnixListener, views: Arc<Views>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the admin socket does not accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let views = Arc::clone(&views);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let views = Arc::clone(&views);
                async move { Ok::<_, Infallible>(answer(&views, &request)) }
            });
            let mut server = hyper::server::conn::http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            // The client has disconnected; there is nothing to do.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn answer(views: &Views, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, body) = if request.method() != Method::GET {
        (StatusCode::METHOD_NOT_ALLOWED, json!({"error": "the admin socket is read-only: use GET"}))
    } else {
        match (request.uri().path(), request.uri().query()) {
            (explained::PATH, Some(question)) => match views.explain(question) {
                Ok(explanation) => (StatusCode::OK, json!(explanation)),
                Err(error) => (StatusCode::BAD_REQUEST, json!({"error": error.to_string()})),
            },
            (path, _) => match views.show(path) {
                Some(body) => (StatusCode::OK, body),
                None => (StatusCode::NOT_FOUND, json!({"error": "not here", "try": View::ALL.map(View::path)})),
            },
        }
    };
    let mut text = body.to_string();
    text.push('\n');
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}

/// Requests a view from the agent of a state folder.
///
/// # Errors
/// [`AdminError::NoAgent`] if none runs there.
pub async fn ask(state: &Path, view: View) -> Result<Value, AdminError> {
    get(state, view.path()).await
}

/// Requests an explanation from the agent of a state folder.
///
/// # Errors
/// [`AdminError::NoAgent`] if none runs there.
pub async fn ask_why(state: &Path, query: &Query) -> Result<Explanation, AdminError> {
    let answer = get(state, &explained::path_of(query)).await?;
    serde_json::from_value(answer).map_err(|error| AdminError::Answer(error.to_string()))
}

async fn get(state: &Path, path_and_query: &str) -> Result<Value, AdminError> {
    let path = socket(state);
    let stream = UnixStream::connect(&path).await.map_err(|_| AdminError::NoAgent(path))?;
    let broken = |error: &dyn std::fmt::Display| AdminError::Answer(error.to_string());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| broken(&e))?;
    tokio::spawn(connection);
    let request = Request::get(path_and_query).header("host", "sluice").body(Empty::<Bytes>::new());
    let request = request.map_err(|e| broken(&e))?;
    let response = sender.send_request(request).await.map_err(|e| broken(&e))?;
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await.map_err(|e| broken(&e))?;
    serde_json::from_slice(&body.to_bytes()).map_err(|e| broken(&e))
}
