//! HTTP/2, and gRPC on it.

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::backend::{Instead, NUMBER, Stage, Stream};
use super::log::Seen;

/// Serves a connection until its end.
pub async fn serve(stream: Box<dyn Stream>, about: Vec<String>, stage: Stage, is_grpc: bool) {
    let service = service_fn(move |request| answer(request, about.clone(), stage.clone(), is_grpc));
    // The peer observes errors.
    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

type Error = Box<dyn std::error::Error + Send + Sync>;

async fn answer(
    request: Request<Incoming>,
    about: Vec<String>,
    stage: Stage,
    is_grpc: bool,
) -> Result<Response<impl Body<Data = Bytes, Error = Error>>, Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?;
    let trailers = body.trailers().map(texts).unwrap_or_default();
    let mut fields = vec![(":authority".to_owned(), head.uri.authority().map(ToString::to_string).unwrap_or_default())];
    fields.extend(texts(&head.headers));
    let target = head.uri.path_and_query().map_or("*", |target| target.as_str());
    let seen = Seen {
        request: format!("{} {target} HTTP/2", head.method),
        fields,
        about,
        body: body.to_bytes().to_vec(),
        trailers,
        ..Seen::default()
    };
    let (answer, name) = (&stage.backend.answer, &stage.backend.name);
    let before = stage.log.count_of(name);
    let number = stage.log.add(name, seen.clone());
    stage.pause().await;
    if matches!(answer.instead, Some(Instead::Close | Instead::Send(_))) {
        return Err("it is to end without an answer".into());
    }
    let text = answer.body.clone().unwrap_or_else(|| Seen { backend: name.clone(), ..seen }.lines());
    let mut response = Response::builder().status(answer.status(before)).header(NUMBER, format!("{name}/{number}"));
    for (name, value) in &answer.fields {
        response = response.header(name, value);
    }
    let (content, kind) = if is_grpc { (message(&text), "application/grpc") } else { (text.into(), "text/plain") };
    let mut trailers = HeaderMap::new();
    if is_grpc {
        trailers.insert(HeaderName::from_static("grpc-status"), HeaderValue::from(answer.grpc_status));
    }
    let trailers = (!trailers.is_empty()).then_some(Ok(trailers));
    let body = Full::new(content).map_err(|never| match never {}).with_trailers(async { trailers });
    Ok(response.header("content-type", kind).body(body)?)
}

/// A gRPC message: uncompressed, 4 bytes of length, the text.
fn message(text: &str) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(text.len()).unwrap_or_default());
    bytes.put_slice(text.as_bytes());
    bytes.freeze()
}

fn texts(fields: &HeaderMap) -> Vec<(String, String)> {
    let text = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    fields.iter().map(text).collect()
}
