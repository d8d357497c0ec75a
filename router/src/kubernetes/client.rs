//! The client: kube's configuration and authentication over one HTTP/2 connection.
//!
//! kube's own transport offers HTTP/1.1 only, which needs a connection for each watch (kube-client 5.0.0, `Cargo.toml`:
//! hyper-rustls without `http2`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tower::{BoxError, ServiceBuilder};

use super::reachability::Reachability;

/// Interval of HTTP/2 PING frames, and the time for their answer; those of client-go.
const PING: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Receive window of the connection, in bytes: a watch that is read slowly must not stall the others.
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Receive window of one response, in bytes.
const STREAM_WINDOW: u32 = 1 << 20;
/// Maximum time for the TCP connection.
const CONNECT: Duration = Duration::from_secs(10);

/// An API server.
#[derive(Clone)]
pub struct ApiServer {
    /// Its client.
    pub client: Client,
    /// Its URL.
    pub url: String,
    /// Whether it answers the client.
    pub reachability: Reachability,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig cannot be used.
    #[error("--kubeconfig {path}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: kube::config::KubeconfigError,
    },
    /// Without a kubeconfig, the process must be a pod.
    #[error("without --kubeconfig, the service account of a pod is used")]
    Inferred(#[from] kube::config::InferConfigError),
    /// The credentials or the CA cannot be used.
    #[error("the credentials of the cluster cannot be used")]
    Credentials(#[from] kube::Error),
}

/// A client for the cluster of a kubeconfig; without one, of `KUBECONFIG`, `~/.kube/config` or the pod's service account.
/// It connects with the first request.
///
/// # Errors
/// [`ClientError`]: files that cannot be read or used. An API server that does not answer is no error here.
pub async fn client(kubeconfig: Option<&Path>) -> Result<ApiServer, ClientError> {
    let mut config = match kubeconfig {
        Some(path) => {
            let unusable = |source| ClientError::Kubeconfig { path: path.to_owned(), source };
            let file = Kubeconfig::read_from(path).map_err(unusable)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(unusable)?
        }
        None => Config::infer().await?,
    };
    config.connect_timeout = Some(CONNECT);
    let mut connector = legacy::connect::HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    let tls = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    let tls = match &config.tls_server_name {
        Some(name) => tls.with_server_name_resolver(hyper_rustls::FixedServerNameResolver::new(server_name(name)?)),
        None => tls,
    };
    let transport = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build::<_, Body>(tls.enable_all_versions().wrap_connector(connector));
    let reachability = Reachability::default();
    let record = reachability.clone();
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .map_request(|mut request: http::Request<Body>| {
            request.headers_mut().insert(USER_AGENT, AGENT);
            request
        })
        .map_result(move |answer: Result<_, legacy::Error>| {
            record.record(answer.is_ok());
            answer.map(with_details).map_err(BoxError::from)
        })
        .service(transport);
    let url = config.cluster_url.to_string();
    Ok(ApiServer { client: Client::new(service, config.default_namespace), url, reachability })
}

/// An answer whose header alone says after how many seconds to try again, as API Priority and Fairness sends it (429, with a
/// text), has this in the details of a `Status` as well, which is all that kube reads.
fn with_details(answer: Response<Incoming>) -> Response<Either<Incoming, Full<Bytes>>> {
    let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
    let is_json = answer.headers().get(CONTENT_TYPE).is_some_and(|media| media.as_bytes().starts_with(JSON.as_bytes()));
    let (mut head, body) = answer.into_parts();
    let (true, false, Some(seconds)) =
        (head.status.is_client_error() || head.status.is_server_error(), is_json, seconds)
    else {
        return Response::from_parts(head, Either::Left(body));
    };
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": head.status.canonical_reason(),
        "reason": head.status.canonical_reason().map(|reason| reason.replace(' ', "")),
        "code": head.status.as_u16(),
        "details": {"retryAfterSeconds": seconds},
    });
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    Response::from_parts(head, Either::Right(Full::from(status.to_string())))
}

const JSON: &str = "application/json";

/// Audit logs and flow schemas of the API server name the client by this.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("sluice/", env!("CARGO_PKG_VERSION")));

fn server_name(name: &str) -> Result<rustls_pki_types::ServerName<'static>, ClientError> {
    rustls_pki_types::ServerName::try_from(name.to_owned())
        .map_err(|error| ClientError::Credentials(kube::Error::Service(error.into())))
}
