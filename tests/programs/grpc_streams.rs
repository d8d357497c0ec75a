//! gRPC streams by tonic: a server, or a client with one stream of each kind, each on a connection of its own.
//!
//! Arguments: `server PORT [CERTIFICATE KEY]`, which prints "ready" when it listens, or `client HOST PORT CA MESSAGES
//! PER_SECOND`, which prints the result of each stream as JSON; CA is `-` for clear text. Messages are plain bytes.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, BufMut, Bytes};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::Uri;
use http::uri::PathAndQuery;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until, timeout};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::StreamingService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};

const KINDS: [&str; 3] = ["Chat", "Download", "Upload"];

/// Encodes bytes verbatim.
struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Plain;
    type Decoder = Plain;

    fn encoder(&mut self) -> Plain {
        Plain
    }

    fn decoder(&mut self) -> Plain {
        Plain
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// `count` messages at `rate` per second: a word and its number.
fn paced(word: &'static str, count: u32, rate: u32) -> BoxStream<'static, Bytes> {
    let begun = Instant::now();
    let message = move |number| async move {
        sleep_until(begun + Duration::from_secs(1) * number / rate).await;
        Bytes::from(format!("{word} {number}"))
    };
    stream::iter(0..count).then(message).boxed()
}

/// A call.
struct Call(String);

impl StreamingService<Bytes> for Call {
    type Response = Bytes;
    type ResponseStream = BoxStream<'static, Result<Bytes, Status>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let messages = request.into_inner();
        ready(match &*self.0 {
            "/stories.Streams/Chat" => Ok(Response::new(messages.boxed())),
            "/stories.Streams/Download" => Ok(Response::new(stream::once(download(messages)).flatten().boxed())),
            "/stories.Streams/Upload" => Ok(Response::new(stream::once(upload(messages)).boxed())),
            other => Err(Status::unimplemented(other)),
        })
    }
}

/// As many messages at the rate that the only message of the client states.
async fn download(mut messages: Streaming<Bytes>) -> BoxStream<'static, Result<Bytes, Status>> {
    let asked = match messages.message().await {
        Ok(asked) => asked.unwrap_or_default(),
        Err(status) => return stream::iter([Err(status)]).boxed(),
    };
    let numbers: Vec<u32> = String::from_utf8_lossy(&asked).split(' ').flat_map(str::parse).collect();
    match numbers[..] {
        [count, rate] if rate > 0 => paced("tick", count, rate).map(Ok).boxed(),
        _ => stream::iter([Err(Status::invalid_argument(format!("{asked:?}")))]).boxed(),
    }
}

/// The number of messages received, at the end.
async fn upload(mut messages: Streaming<Bytes>) -> Result<Bytes, Status> {
    let mut count = 0;
    while messages.message().await?.is_some() {
        count += 1;
    }
    Ok(Bytes::from(format!("{count}")))
}

async fn serve(port: &str, files: &[String]) -> Result<()> {
    let mut server = Server::builder();
    if let [certificate, key] = files {
        let identity = Identity::from_pem(std::fs::read(certificate)?, std::fs::read(key)?);
        server = server.tls_config(ServerTlsConfig::new().identity(identity))?;
    }
    let incoming = TcpIncoming::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?)))?;
    println!("ready");
    let service = tower::service_fn(async |request: http::Request<Body>| {
        let call = Call(request.uri().path().to_owned());
        Ok::<_, Infallible>(tonic::server::Grpc::new(Plain).streaming(call, request).await)
    });
    Ok(server.serve_with_incoming(service, incoming.with_nodelay(Some(true))).await?)
}

async fn connect(host: &str, port: &str, ca: &str) -> Result<Channel> {
    let scheme = if ca == "-" { "http" } else { "https" };
    let origin = Uri::try_from(format!("{scheme}://{host}"))?;
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://127.0.0.1:{port}"))?.origin(origin);
    if ca != "-" {
        let ca = Certificate::from_pem(std::fs::read(ca)?);
        endpoint = endpoint.tls_config(ClientTlsConfig::new().ca_certificate(ca).domain_name(host))?;
    }
    Ok(endpoint.connect_timeout(Duration::from_secs(20)).connect().await?)
}

/// Runs a stream of one kind; returns its number of messages.
async fn call(channel: Channel, kind: &'static str, count: u32, rate: u32) -> Result<u32> {
    let (messages, mut expected) = match kind {
        "Chat" => (paced("word", count, rate), (0..count).map(|number| format!("word {number}")).collect()),
        "Download" => {
            let ask = Bytes::from(format!("{count} {rate}"));
            (stream::iter([ask]).boxed(), (0..count).map(|number| format!("tick {number}")).collect())
        }
        "Upload" => (paced("part", count, rate), vec![count.to_string()]),
        _ => bail!("there is no {kind}"),
    };
    expected.reverse();
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await?;
    let path = PathAndQuery::try_from(format!("/stories.Streams/{kind}"))?;
    let mut answers = grpc.streaming(Request::new(messages), path, Plain).await?.into_inner();
    let mut seen = 0;
    while let Some(answer) = answers.message().await.with_context(|| format!("after {seen} messages"))? {
        let expected = expected.pop();
        ensure!(Some(&*answer) == expected.as_deref().map(str::as_bytes), "{answer:?} instead of {expected:?}");
        seen += 1;
    }
    ensure!(expected.is_empty(), "only {seen} messages");
    Ok(count)
}

async fn ask(host: &str, port: &str, ca: &str, count: u32, rate: u32) -> Value {
    let patience = Duration::from_secs(u64::from(count / rate) + 60);
    let one = async |kind| {
        let work = async { call(connect(host, port, ca).await?, kind, count, rate).await };
        let outcome = match timeout(patience, work).await {
            Ok(Ok(count)) => format!("{count} messages"),
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => format!("not within {patience:?}"),
        };
        (kind.to_owned(), Value::from(outcome))
    };
    let seen: Map<String, Value> = futures_util::future::join_all(KINDS.map(one)).await.into_iter().collect();
    Value::Object(seen)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [role, port, files @ ..] if role == "server" => serve(port, files).await,
        [role, host, port, ca, count, rate] if role == "client" => {
            println!("{}", ask(host, port, ca, count.parse()?, rate.parse()?).await);
            Ok(())
        }
        _ => bail!("the arguments are at the top of this file"),
    }
}
