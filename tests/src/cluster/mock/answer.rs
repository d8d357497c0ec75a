//! Answers to requests.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::body::{self, Body};
use super::call::{Call, Verb};
use super::fault::{Fault, Then};
use super::lock::lock;
use super::object::{Form, Object};
use super::state::State;
use super::status::Failure;
use super::store::Store;
use super::{discovery, list, log, watch, write};

/// Path of the requests by which clients ask for their rights (authorization.k8s.io).
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Answers a request of a connection, and logs it.
///
/// # Errors
/// When its body breaks off.
pub async fn answer(state: Arc<State>, connection: u64, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let call = Call::parse(&state.store(), &head.method, &head.uri);
    let known = call.as_ref().ok().and_then(Option::as_ref);
    let number = state.log.add(log::Request {
        number: 0,
        connection,
        method: head.method.clone(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        verb: known.map(|call| call.verb),
        plural: known.map(|call| call.kind.plural.clone()).unwrap_or_default(),
        body: body.clone(),
        agent: text(&head, header::USER_AGENT).to_owned(),
        answer: None,
    });
    let answer = answered(&state, &head, call, body).await.unwrap_or_else(failed);
    state.log.answered(number, answer.status());
    Ok(answer)
}

async fn answered(
    state: &Arc<State>,
    head: &Parts,
    call: Result<Option<Call>, Failure>,
    body: Bytes,
) -> Result<Response<Body>, Failure> {
    let token = lock(&state.token).clone();
    if token.is_some_and(|token| text(head, header::AUTHORIZATION) != format!("Bearer {token}")) {
        return Err(Failure::new(StatusCode::UNAUTHORIZED, "Unauthorized"));
    }
    let Some(call) = call? else { return Ok(beside_kinds(state, head, &body)) };
    let fault = state.faults.met(&call);
    match fault.as_ref().map(Fault::then) {
        Some(Then::Fail(failure)) => return Err(failure.clone()),
        Some(Then::Busy(seconds)) => {
            let mut answer = plain(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.\n");
            answer.headers_mut().insert(header::RETRY_AFTER, (*seconds).into());
            return Ok(answer);
        }
        Some(Then::Answer(bytes)) => return Ok(answer_of(StatusCode::OK, body::full(bytes.clone()))),
        _ => {}
    }
    if let Some(fault) = fault.as_ref().filter(|fault| matches!(fault.then(), Then::Hold)) {
        fault.released().await;
    }
    let answer = of_kind(state, head, call, &body, fault.as_ref())?;
    Ok(match fault {
        Some(fault) => answer.map(|body| body::with(&fault, body)),
        None => answer,
    })
}

/// The answer to a request of a kind.
fn of_kind(
    state: &Arc<State>,
    head: &Parts,
    call: Call,
    body: &[u8],
    fault: Option<&Fault>,
) -> Result<Response<Body>, Failure> {
    let is_metadata =
        text(head, header::ACCEPT).split(',').next().is_some_and(|it| it.contains("as=PartialObjectMetadata"));
    match call.verb {
        Verb::List => {
            let body = list::list(&state.store(), &state.pages, &call, is_metadata, fault)?;
            Ok(answer_of(StatusCode::OK, body))
        }
        Verb::StreamingList | Verb::Watch => {
            Ok(answer_of(StatusCode::OK, watch::watch(state, call, is_metadata, fault)?))
        }
        Verb::Get => {
            let store = state.store();
            let found = store.get(&call.kind, &call.key());
            let object = found.ok_or_else(|| Failure::not_found(&call.kind, &call.key().1))?;
            Ok(object_of(StatusCode::OK, &call, object, is_metadata))
        }
        Verb::Create | Verb::Replace | Verb::Patch => {
            let value = read(head, call.verb, body)?;
            let code = if call.verb == Verb::Create { StatusCode::CREATED } else { StatusCode::OK };
            let object = state.write(|store| written(store, &call, value))?;
            Ok(object_of(code, &call, &object, is_metadata))
        }
        Verb::Delete => {
            let options = serde_json::from_slice(body).unwrap_or_default();
            if let Some(held) = state.write(|store| deleted(store, &call, &options))? {
                return Ok(object_of(StatusCode::OK, &call, &held, is_metadata));
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
            Ok(answer_of(StatusCode::OK, body::full(status.to_string())))
        }
    }
}

fn written(store: &mut Store, call: &Call, value: Value) -> Result<Arc<Object>, Failure> {
    let (key, is_status) = (call.key(), call.subresource.is_some());
    let object = match call.verb {
        Verb::Create => write::create(store, &call.kind, &key.0, value)?,
        Verb::Patch => write::patch(store, &call.kind, &key, &value, is_status)?,
        _ => write::replace(store, &call.kind, &key, value, is_status)?,
    };
    discovery::defined(store, &call.kind, &object);
    Ok(object)
}

/// Deletes an object, or all that are selected; returns the object if finalizers hold it.
fn deleted(store: &mut Store, call: &Call, options: &Value) -> Result<Option<Arc<Object>>, Failure> {
    let keys = match &call.name {
        Some(_) => vec![call.key()],
        None => {
            let found = store.objects(&call.kind, call.namespace.as_deref(), &list::selector(&call.query)?);
            found.iter().map(|object| object.key.clone()).collect()
        }
    };
    let mut held = None;
    for key in keys {
        let object = write::delete(store, &call.kind, &key, options)?;
        if store.get(&call.kind, &key).is_some() {
            held = call.name.is_some().then_some(object);
        } else {
            discovery::undefined(store, &call.kind, &object);
        }
    }
    Ok(held)
}

/// The value in the body of a write.
fn read(head: &Parts, verb: Verb, body: &[u8]) -> Result<Value, Failure> {
    let wanted = if verb == Verb::Patch { "application/merge-patch+json" } else { "application/json" };
    let media = text(head, header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    if media != wanted {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {wanted}");
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    serde_json::from_slice(body).map_err(|error| Failure::new(StatusCode::BAD_REQUEST, error.to_string()))
}

/// The answer to a request that is none of a kind.
fn beside_kinds(state: &State, head: &Parts, body: &[u8]) -> Response<Body> {
    let path = head.uri.path();
    if head.method == Method::POST && path == REVIEWS {
        let mut review: Value = serde_json::from_slice(body).unwrap_or_default();
        let asked = &review["spec"]["resourceAttributes"];
        let verb = match asked["verb"].as_str().unwrap_or_default() {
            "get" => Verb::Get,
            "list" => Verb::List,
            "create" => Verb::Create,
            "update" => Verb::Replace,
            "patch" => Verb::Patch,
            "delete" => Verb::Delete,
            _ => Verb::Watch,
        };
        let is_forbidden = state.faults.forbids(verb, asked["resource"].as_str().unwrap_or_default());
        review["status"] = json!({"allowed": !is_forbidden});
        return answer_of(StatusCode::CREATED, body::full(review.to_string()));
    }
    if ["/healthz", "/livez", "/readyz"].contains(&path) {
        return plain(StatusCode::OK, "ok");
    }
    let store = state.store();
    match discovery::document(&store, path) {
        Some(document) => answer_of(StatusCode::OK, body::full(document.to_string())),
        None if discovery::is_served(&store, path) => {
            failed(Failure::new(StatusCode::NOT_FOUND, "the server could not find the requested resource"))
        }
        None => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

fn object_of(code: StatusCode, call: &Call, object: &Object, is_metadata: bool) -> Response<Body> {
    let whole = || Form::Whole { api_version: call.kind.api_version(&call.version), kind: call.kind.name.clone() };
    answer_of(code, body::full(object.text(&if is_metadata { Form::Metadata } else { whole() })))
}

fn failed(failure: Failure) -> Response<Body> {
    let mut answer = answer_of(failure.code, body::full(failure.body().to_string()));
    if let Some(seconds) = failure.retry_after {
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

fn plain(code: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = answer_of(code, body::full(text));
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

fn answer_of(code: StatusCode, body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    *answer.status_mut() = code;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    answer
}

fn text(head: &Parts, name: header::HeaderName) -> &str {
    head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
