//! An endpoint that authenticates its connections as IIS does ([MS-NTHT], RFC 4559): a handshake of three messages,
//! after which every request on the connection is that user's. And clients that perform the handshake.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::header::{AUTHORIZATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, UPGRADE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::tables::{PATIENCE, Rig};
use crate::{backends, client};

/// The authentication that an endpoint demands.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    pub scheme: &'static str,
    /// As a proxy, with 407.
    pub as_proxy: bool,
}

impl Asks {
    fn fields(self) -> (StatusCode, HeaderName, HeaderName) {
        if self.as_proxy {
            (StatusCode::PROXY_AUTHENTICATION_REQUIRED, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION)
        } else {
            (StatusCode::UNAUTHORIZED, WWW_AUTHENTICATE, AUTHORIZATION)
        }
    }
}

/// Traffic of one connection of the endpoint.
#[derive(Clone, Debug, Default)]
pub struct Came {
    /// Authenticated users, in order.
    pub users: Vec<String>,
    /// For each request, its sender and the user that it was served as.
    pub requests: Vec<(String, Option<String>)>,
    /// Maximum number of concurrent requests.
    pub at_once: usize,
    pub is_http2: bool,
    pub has_ended: bool,
}

#[derive(Debug, Default)]
struct State {
    came: Came,
    challenge: Option<usize>,
    under_way: usize,
}

type Connection = Arc<Mutex<State>>;

/// The endpoint.
#[derive(Clone)]
pub struct Iis {
    pub asks: Asks,
    /// Accepts no requests over HTTP/2.
    http1_only: bool,
    connections: Arc<Mutex<Vec<Connection>>>,
}

impl Iis {
    pub fn new(scheme: &'static str) -> Self {
        Iis { asks: Asks { scheme, as_proxy: false }, http1_only: false, connections: Arc::default() }
    }

    pub fn like_a_proxy(mut self) -> Self {
        self.asks.as_proxy = true;
        self
    }

    pub fn requires_http1(mut self) -> Self {
        self.http1_only = true;
        self
    }

    /// In clear text, over HTTP/1.1.
    pub async fn http(&self) -> SocketAddr {
        let iis = self.clone();
        backends::serve(move |stream| iis.clone().connection(stream, false)).await
    }

    /// In clear text, over HTTP/2: stands for another proxy in front of IIS, which authenticates each connection.
    pub async fn h2c(&self) -> SocketAddr {
        let iis = self.clone();
        backends::serve(move |stream| iis.clone().connection(stream, true)).await
    }

    /// Over TLS with the protocol that the handshake selects.
    pub async fn https(&self, config: Arc<ServerConfig>) -> SocketAddr {
        let iis = self.clone();
        backends::serve(move |stream| {
            let (iis, acceptor) = (iis.clone(), TlsAcceptor::from(Arc::clone(&config)));
            async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                iis.connection(stream, http2).await;
            }
        })
        .await
    }

    /// The traffic of each connection so far.
    pub fn came(&self) -> Vec<Came> {
        self.connections.lock().unwrap().iter().map(|connection| connection.lock().unwrap().came.clone()).collect()
    }

    async fn connection(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, http2: bool) {
        let connection = Connection::default();
        connection.lock().unwrap().came.is_http2 = http2;
        self.connections.lock().unwrap().push(Arc::clone(&connection));
        let state = Arc::clone(&connection);
        let service = service_fn(move |request| {
            let (iis, state) = (self.clone(), Arc::clone(&state));
            async move { iis.answer(state, request).await }
        });
        if http2 {
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        } else {
            let server = hyper::server::conn::http1::Builder::new();
            let _ = server.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        }
        connection.lock().unwrap().came.has_ended = true;
    }

    /// Responds with the connection's user. `/slow` delays its response, `/read` reads the content first, `/flaky`
    /// fails, `/bye` is the last request, `/ws` switches protocols and then sends the user.
    async fn answer(
        self,
        connection: Connection,
        mut request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, h2::Error> {
        let _under_way = UnderWay::of(&connection);
        if request.uri().path() == "/read" {
            let _ = request.body_mut().collect().await;
        }
        let (status, challenges, credentials) = self.asks.fields();
        let said = request.headers().get(&credentials).map(|value| value.to_str().unwrap().to_owned());
        let message = said.as_deref().and_then(|said| said.strip_prefix(self.asks.scheme)).map(str::trim_start);
        let client = request.headers()["x-client"].to_str().unwrap().to_owned();
        // IIS demands HTTP/1.1 for NTLM.
        let requires_http1 = self.http1_only || (message.is_some() && self.asks.scheme == "NTLM");
        if request.version() == Version::HTTP_2 && requires_http1 {
            return Err(h2::Reason::HTTP_1_1_REQUIRED.into());
        }
        let (challenge, user) = {
            let mut state = connection.lock().unwrap();
            let mut challenge = None;
            match message {
                Some("hello") => {
                    let number = state.came.requests.len();
                    (state.challenge, challenge) = (Some(number), Some(format!("{} {number}", self.asks.scheme)));
                }
                Some(proof) => {
                    let proven = state.challenge.take().and_then(|number| proof.strip_prefix(&format!("{number}.")));
                    state.came.users.extend(proven.map(str::to_owned));
                }
                None => {}
            }
            let user = state.came.users.last().filter(|_| challenge.is_none()).cloned();
            state.came.requests.push((client, user.clone()));
            (challenge, user)
        };
        let Some(user) = user else {
            let challenge = challenge.unwrap_or_else(|| self.asks.scheme.to_owned());
            let refused = Response::builder().status(status).header(challenges, challenge);
            return Ok(refused.body(Full::from("who is it?")).unwrap());
        };
        match request.uri().path() {
            "/bye" => return Ok(Response::builder().header("connection", "close").body(Full::from(user)).unwrap()),
            "/slow" => tokio::time::sleep(Duration::from_millis(20)).await,
            "/flaky" => return Ok(Response::builder().status(503).body(Full::from(user)).unwrap()),
            "/ws" => {
                let upgrade = hyper::upgrade::on(&mut request);
                tokio::spawn(async move {
                    let mut stream = TokioIo::new(upgrade.await.unwrap());
                    stream.write_all(user.as_bytes()).await.unwrap();
                });
                let switch = Response::builder().status(101).header("connection", "upgrade").header(UPGRADE, "chat");
                return Ok(switch.body(Full::default()).unwrap());
            }
            _ => {}
        }
        Ok(Response::new(Full::from(user)))
    }
}

/// Counts a request as in progress.
struct UnderWay(Connection);

impl UnderWay {
    fn of(connection: &Connection) -> Self {
        let mut state = connection.lock().unwrap();
        state.under_way += 1;
        state.came.at_once = state.came.at_once.max(state.under_way);
        UnderWay(Arc::clone(connection))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.lock().unwrap().under_way -= 1;
    }
}

/// Protocol between a client and the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    Http1,
    Tls,
    Http2,
}

#[derive(Clone)]
enum Sender {
    Http1(Arc<tokio::sync::Mutex<http1::SendRequest<Full<Bytes>>>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// One connection of a client that sends its name in every request.
#[derive(Clone)]
pub struct Client {
    pub name: String,
    pub asks: Asks,
    host: String,
    sender: Sender,
}

/// A response as the client receives it.
#[derive(Debug)]
pub struct ObjectStatus {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Client {
    pub async fn connect(rig: &Rig, speaks: Speaks, host: &str, name: &str, iis: &Iis) -> Self {
        let sender = match speaks {
            Speaks::Http1 => Sender::http1(TcpStream::connect(rig.http).await.unwrap()).await,
            Speaks::Tls => Sender::http1(client::tls(rig.https, Some(host), &["http/1.1"]).await).await,
            Speaks::Http2 => {
                let stream = client::tls(rig.https, Some(host), &["h2"]).await;
                let (sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
                tokio::spawn(driver);
                Sender::Http2(sender)
            }
        };
        Client { name: name.to_owned(), asks: iis.asks, host: host.to_owned(), sender }
    }

    pub fn request(&self, path: &str, credentials: Option<&str>) -> Request<Full<Bytes>> {
        let uri = match self.sender {
            Sender::Http1(_) => path.to_owned(),
            Sender::Http2(_) => format!("https://{}{path}", self.host),
        };
        let mut request = Request::get(uri).header("x-client", &self.name).body(Full::default()).unwrap();
        if matches!(self.sender, Sender::Http1(_)) {
            request.headers_mut().insert("host", self.host.parse().unwrap());
        }
        if let Some(credentials) = credentials {
            request.headers_mut().insert(self.asks.fields().2, credentials.parse().unwrap());
        }
        request
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, hyper::Error> {
        let answer = async {
            match self.sender.clone() {
                Sender::Http1(sender) => {
                    let mut sender = sender.lock().await;
                    sender.ready().await?;
                    sender.send_request(request).await
                }
                Sender::Http2(mut sender) => sender.send_request(request).await,
            }
        };
        timeout(PATIENCE, answer).await.expect("an answer")
    }

    pub async fn ask(&self, path: &str, credentials: Option<&str>) -> ObjectStatus {
        let (head, body) = self.send(self.request(path, credentials)).await.unwrap().into_parts();
        let body = timeout(PATIENCE, body.collect()).await.expect("all of it").unwrap().to_bytes();
        ObjectStatus { status: head.status, headers: head.headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }

    /// The three messages; returns the last response, or the first that does not belong to the handshake.
    pub async fn authenticate(&self, path: &str) -> ObjectStatus {
        let (status, challenges, _) = self.asks.fields();
        let scheme = self.asks.scheme;
        let challenged = self.ask(path, Some(&format!("{scheme} hello"))).await;
        let challenge = challenged.headers.get(&challenges).and_then(|challenge| challenge.to_str().ok());
        match challenge {
            Some(challenge) if challenged.status == status && challenge.len() > scheme.len() => {
                self.ask(path, Some(&format!("{challenge}.{}", self.name))).await
            }
            _ => challenged,
        }
    }
}

impl Sender {
    async fn http1(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver.with_upgrades());
        Sender::Http1(Arc::new(tokio::sync::Mutex::new(sender)))
    }
}
