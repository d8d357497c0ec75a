//! Lists, whole or in pages. All pages are of the state at the first one.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::body::{self, Body, PART};
use super::call::{Call, Query};
use super::fault::{Fault, Then};
use super::lock::lock;
use super::object::{Form, Object};
use super::selector::Selector;
use super::status::Failure;
use super::store::Store;

/// Lists that clients are reading by pages. A token, `LIST.OFFSET`, expires when there are too many others.
#[derive(Default)]
pub struct Pages(Mutex<Lists>);

#[derive(Default)]
struct Lists {
    lists: VecDeque<(u64, Snapshot)>,
    made: u64,
}

/// Number of lists that are kept for further pages.
const KEPT: usize = 16;

/// Objects at a version.
#[derive(Clone)]
struct Snapshot {
    version: u64,
    objects: Arc<[Arc<Object>]>,
}

impl Pages {
    /// Expires all tokens.
    pub fn expire(&self) {
        lock(&self.0).lists.clear();
    }

    /// A token for the rest of a list; one that has none yet is kept.
    fn token(&self, list: Option<u64>, snapshot: &Snapshot, offset: usize) -> String {
        let mut kept = lock(&self.0);
        let list = list.unwrap_or_else(|| {
            kept.made += 1;
            let made = kept.made;
            kept.lists.truncate(KEPT - 1);
            kept.lists.push_front((made, snapshot.clone()));
            made
        });
        format!("{list}.{offset}")
    }

    /// The list of a token, its number, and the offset of the next page.
    fn find(&self, token: &str) -> Result<(u64, Snapshot, usize), Failure> {
        let parsed = token.split_once('.').and_then(|(list, at)| Some((list.parse().ok()?, at.parse().ok()?)));
        let (list, offset) = parsed.ok_or_else(|| bad(format!("continue key is not valid: {token:?}")))?;
        let kept = lock(&self.0);
        let found = kept.lists.iter().find(|(number, _)| *number == list);
        let (_, snapshot) = found.ok_or_else(|| {
            let message = "The provided continue parameter is too old to display a consistent list result.";
            Failure::new(StatusCode::GONE, message)
        })?;
        Ok((list, snapshot.clone(), offset))
    }
}

/// Checks the version that a list is to have; the present one is at least as new as it may ask for.
///
/// # Errors
/// When it has not been reached, or the list is to be of a version that is gone.
pub fn check_version(store: &Store, call: &Call) -> Result<(), Failure> {
    let Some(version) = call.query.number("resourceVersion")? else { return Ok(()) };
    if version > store.version() {
        let message = format!("Too large resource version: {version}, current: {}", store.version());
        return Err(Failure::new(StatusCode::GATEWAY_TIMEOUT, message));
    }
    if call.query.get("resourceVersionMatch") == "Exact" {
        let changes = store.changes(&call.kind, version, 1)?;
        if changes.is_some_and(|changes| !changes.is_empty()) {
            return Err(Failure::expired(version, store.version()));
        }
    }
    Ok(())
}

/// The selector of a list or a watch.
///
/// # Errors
/// When it is malformed.
pub fn selector(query: &Query) -> Result<Selector, Failure> {
    Selector::parse(query.get("fieldSelector"), query.get("labelSelector"))
}

/// The body of a list.
///
/// # Errors
/// When the query is malformed or its version expired.
pub fn list(
    store: &Store,
    pages: &Pages,
    call: &Call,
    is_metadata: bool,
    fault: Option<&Fault>,
) -> Result<Body, Failure> {
    let token = call.query.get("continue");
    let (number, snapshot, offset) = if token.is_empty() {
        check_version(store, call)?;
        let objects = store.objects(&call.kind, call.namespace.as_deref(), &selector(&call.query)?);
        (None, Snapshot { version: store.version(), objects: objects.into() }, 0)
    } else {
        if call.query.number("resourceVersion")?.is_some_and(|version| version > 0) {
            return Err(bad("specifying resource version is not allowed when using continue".to_owned()));
        }
        let (number, snapshot, offset) = pages.find(token)?;
        (Some(number), snapshot, offset)
    };
    let length = snapshot.objects.len();
    let limit = call.query.number("limit")?.filter(|limit| *limit > 0);
    let end =
        limit.map_or(length, |limit| length.min(offset.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX))));
    let mut metadata = json!({"resourceVersion": snapshot.version.to_string()});
    if call.kind.is_defined && !is_metadata {
        metadata["continue"] = json!("");
    }
    if end < length {
        metadata["continue"] = json!(pages.token(number, &snapshot, end));
        if call.query.get("fieldSelector").is_empty() && call.query.get("labelSelector").is_empty() {
            metadata["remainingItemCount"] = json!(length - end);
        }
    }
    let end = match fault.map(Fault::then) {
        Some(Then::Keep(kept)) => end.min(offset + kept),
        _ => end,
    };
    let api_version = call.kind.api_version(&call.version);
    let (form, list) = match (is_metadata, call.kind.is_defined) {
        (true, _) => (Form::Metadata, ("meta.k8s.io/v1", "PartialObjectMetadataList".to_owned())),
        (false, true) => {
            let form = Form::Whole { api_version: api_version.clone(), kind: call.kind.name.clone() };
            (form, (api_version.as_str(), format!("{}List", call.kind.name)))
        }
        (false, false) => (Form::Untyped, (api_version.as_str(), format!("{}List", call.kind.name))),
    };
    let (api_version, kind) = (Value::from(list.0), Value::from(list.1));
    let mut head =
        format!("{{\"apiVersion\":{api_version},\"kind\":{kind},\"metadata\":{metadata},\"items\":[").into_bytes();
    if let Some(Then::Insert(item)) = fault.map(Fault::then) {
        head.extend_from_slice(item);
        if offset < end {
            head.push(b',');
        }
    }
    Ok(items(head, snapshot.objects, offset, end, form))
}

/// The rest of a list's body: items from `next` to `end`.
fn items(head: Vec<u8>, objects: Arc<[Arc<Object>]>, first: usize, end: usize, form: Form) -> Body {
    body::parts((head, Some(first)), move |(mut part, next)| {
        let made = next.map(|mut next| {
            while next < end && part.len() < PART {
                objects[next].write(&form, &mut part);
                next += 1;
                if next < end {
                    part.push(b',');
                }
            }
            let is_last = next >= end;
            if is_last {
                part.extend_from_slice(b"]}");
            }
            let part: io::Result<Bytes> = Ok(part.into());
            (part, (Vec::new(), (!is_last).then_some(next)))
        });
        std::future::ready(made)
    })
}

fn bad(message: String) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, message)
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, Result};
    use http::Method;
    use http_body_util::BodyExt;
    use tokio::runtime::Builder;

    use super::super::fault::{Faults, When};
    use super::*;

    fn filled(count: usize) -> Result<Store> {
        let mut store = Store::new(10);
        let kind = Arc::clone(store.kind("", "v1", "configmaps").context("it is built in")?);
        for number in 0..count {
            let metadata = json!({"name": format!("{number:05}")});
            store.put(
                &kind,
                ("a".to_owned(), format!("{number:05}")),
                json!({"metadata": metadata, "data": {"a": "b"}}),
            );
        }
        Ok(store)
    }

    fn listed(store: &Store, pages: &Pages, query: &str, fault: Option<&Fault>) -> Result<Result<Value, Failure>> {
        let uri = format!("/api/v1/configmaps?{query}").parse()?;
        let Ok(Some(call)) = Call::parse(store, &Method::GET, &uri) else { anyhow::bail!("{uri} is no call") };
        let body = match list(store, pages, &call, query.contains("metadata"), fault) {
            Ok(body) => body,
            Err(failure) => return Ok(Err(failure)),
        };
        let bytes = Builder::new_current_thread().build()?.block_on(body.collect())?.to_bytes();
        Ok(Ok(serde_json::from_slice(&bytes)?))
    }

    fn names(list: &Value) -> Vec<&str> {
        list["items"].as_array().into_iter().flatten().filter_map(|item| item["metadata"]["name"].as_str()).collect()
    }

    #[test]
    fn pages_are_of_one_version() -> Result<()> {
        let (mut store, pages) = (filled(5)?, Pages::default());
        let first = listed(&store, &pages, "limit=2", None)??;
        assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["00000", "00001"], &json!(3)));
        let kind = Arc::clone(store.kind("", "v1", "configmaps").context("it is built in")?);
        store.remove(&kind, &("a".to_owned(), "00003".to_owned()));
        let token = first["metadata"]["continue"].as_str().context("there are more")?;
        let rest = listed(&store, &pages, &format!("limit=9&continue={token}"), None)??;
        assert_eq!(names(&rest), ["00002", "00003", "00004"]);
        assert_eq!(rest["metadata"], json!({"resourceVersion": first["metadata"]["resourceVersion"]}));
        for number in 0..KEPT {
            assert_eq!(names(&listed(&store, &pages, "limit=3", None)??).len(), 3, "{number}");
        }
        let expired = listed(&store, &pages, &format!("continue={token}"), None)?;
        assert_eq!(expired.map_err(|failure| failure.reason), Err("Expired".to_owned()));
        assert!(listed(&store, &pages, "continue=x", None)?.is_err());
        Ok(())
    }

    #[test]
    fn a_list_has_the_version_that_is_asked_for() -> Result<()> {
        let (store, pages) = (filled(2)?, Pages::default());
        let now = store.version();
        let code =
            |query: &str| listed(&store, &pages, query, None).map(|list| list.map(drop).map_err(|it| it.code.as_u16()));
        assert_eq!(code(&format!("resourceVersion={now}&resourceVersionMatch=NotOlderThan"))?, Ok(()));
        assert_eq!(code(&format!("resourceVersion={}&resourceVersionMatch=NotOlderThan", now + 1))?, Err(504));
        assert_eq!(code(&format!("resourceVersion={now}&resourceVersionMatch=Exact"))?, Ok(()));
        assert_eq!(code(&format!("resourceVersion={}&resourceVersionMatch=Exact", now - 1))?, Err(410));
        assert_eq!(code("resourceVersion=x")?, Err(400));
        assert_eq!(code("limit=x")?, Err(400));
        Ok(())
    }

    #[test]
    fn a_long_list_is_whole_and_faults_change_it() -> Result<()> {
        let (store, pages) = (filled(3000)?, Pages::default());
        let whole = listed(&store, &pages, "", None)??;
        assert_eq!(
            (names(&whole).len(), &whole["kind"], &whole["items"][7]["data"]["a"]),
            (3000, &json!("ConfigMapList"), &json!("b"))
        );
        let partial = listed(&store, &pages, "of=metadata", None)??;
        assert_eq!((names(&partial).len(), &partial["kind"]), (3000, &json!("PartialObjectMetadataList")));
        assert!(partial["items"][7].get("data").is_none());
        let faults = Faults::default();
        let lacking = listed(&store, &pages, "", Some(&faults.add(When::default(), Then::Keep(2))))??;
        assert_eq!(names(&lacking), ["00000", "00001"]);
        let inserted = faults.add(When::default(), Then::Insert("{\"metadata\":5}".into()));
        let malformed = listed(&store, &pages, "limit=1", Some(&inserted))??;
        assert_eq!((&malformed["items"][0], names(&malformed)), (&json!({"metadata": 5}), vec!["00000"]));
        assert_eq!(names(&listed(&filled(0)?, &pages, "", Some(&inserted))??).len(), 0);
        Ok(())
    }
}
