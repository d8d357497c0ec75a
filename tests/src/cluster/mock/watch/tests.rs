//! Watches of ConfigMaps of a state without connections.

use anyhow::{Context, Result, bail};
use http::Method;
use http_body_util::BodyExt;
use tokio::runtime::Builder;

use super::super::fault::{Faults, When};
use super::super::kind::Kind;
use super::super::store::Store;
use super::*;

/// Watches with a query, and what their clients read.
struct Reader {
    body: Body,
    read: Vec<u8>,
}

impl Reader {
    fn open(state: &Arc<State>, query: &str, fault: Option<&Fault>) -> Result<Result<Reader, Failure>> {
        let uri = format!("/api/v1/configmaps?watch=1&allowWatchBookmarks=1&{query}").parse()?;
        let Ok(Some(call)) = Call::parse(&state.store(), &Method::GET, &uri) else { bail!("{uri} is no call") };
        Ok(watch(state, call, false, fault).map(|body| Reader { body, read: Vec::new() }))
    }

    /// The next event: its type, the name or the code of its object, and the version.
    async fn next(&mut self) -> Result<Option<(String, String, u64)>> {
        while !self.read.contains(&b'\n') {
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            self.read.extend_from_slice(frame?.data_ref().context("data alone are sent")?);
        }
        let end = self.read.iter().position(|&byte| byte == b'\n').context("a line ends")?;
        let line: Vec<u8> = self.read.drain(..=end).collect();
        let event: Value = serde_json::from_slice(&line)?;
        let object = &event["object"];
        let what = event["type"].as_str().context("an event has a type")?.to_owned();
        let name = object["metadata"]["name"].as_str().map(str::to_owned);
        let name = name.or_else(|| object["code"].as_u64().map(|code| code.to_string())).unwrap_or_default();
        let version = object["metadata"]["resourceVersion"].as_str().map_or(Ok(0), str::parse)?;
        Ok(Some((what, name, version)))
    }

    async fn types(&mut self, count: usize) -> Result<Vec<String>> {
        let mut types = Vec::new();
        for _ in 0..count {
            types.push(self.next().await?.context("the watch has ended")?.0);
        }
        Ok(types)
    }
}

fn put(store: &mut Store, name: &str) -> u64 {
    let kind = Kind::built_in().find(|kind| kind.plural == "configmaps");
    let value = json!({"metadata": {"name": name, "namespace": "a"}});
    kind.map_or(0, |kind| store.put(&kind, ("a".to_owned(), name.to_owned()), value).version)
}

fn run(test: impl AsyncFnOnce(Arc<State>) -> Result<()>) -> Result<()> {
    let state = Arc::new(State::new(3));
    state.write(|store| ["one", "two"].map(|name| put(store, name)));
    Builder::new_current_thread().enable_all().build()?.block_on(test(state))
}

#[test]
fn a_streaming_list_ends_with_a_bookmark_and_goes_on() -> Result<()> {
    run(async |state| {
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let mut reader = Reader::open(&state, query, None)??;
        let listed = state.store().version();
        assert_eq!(reader.types(2).await?, ["ADDED", "ADDED"]);
        assert_eq!(reader.next().await?, Some(("BOOKMARK".to_owned(), String::new(), listed)));
        let written = state.write(|store| put(store, "two"));
        assert_eq!(reader.next().await?, Some(("MODIFIED".to_owned(), "two".to_owned(), written)));
        assert_eq!(state.watches("configmaps"), 1);
        drop(reader);
        assert_eq!(state.watches("configmaps"), 0);
        assert!(Reader::open(&state, "sendInitialEvents=true", None)?.is_err());
        Ok(())
    })
}

#[test]
fn a_watch_goes_on_from_a_version_that_is_remembered() -> Result<()> {
    run(async |state| {
        let begin = state.store().version();
        for name in ["three", "four", "five"] {
            state.write(|store| put(store, name));
        }
        let mut reader = Reader::open(&state, &format!("resourceVersion={begin}"), None)??;
        assert_eq!(reader.types(3).await?, ["ADDED"; 3]);
        let mut expired = Reader::open(&state, &format!("resourceVersion={}", begin - 1), None)??;
        assert_eq!(expired.next().await?, Some(("ERROR".to_owned(), "410".to_owned(), 0)));
        // A client that reads too slowly is told so: the history has three changes.
        for _ in 0..4 {
            state.write(|store| put(store, "three"));
        }
        assert_eq!(reader.next().await?, Some(("ERROR".to_owned(), "410".to_owned(), 0)));
        assert_eq!(reader.next().await?, None);
        Ok(())
    })
}

#[test]
fn open_watches_are_interrupted() -> Result<()> {
    run(async |state| {
        let version = state.store().version();
        let query = format!("resourceVersion={version}&fieldSelector=metadata.name%3Dthree");
        let mut reader = Reader::open(&state, &query, None)??;
        let interrupt = |plural: &str, what| state.interrupts.send((Some(plural.to_owned()), what)).map(drop);
        // A change that is not selected moves the version of bookmarks.
        let version = state.write(|store| put(store, "one"));
        let waiting = tokio::time::timeout(Duration::from_millis(1), reader.next()).await;
        assert!(waiting.is_err());
        interrupt("configmaps", Interrupt::Bookmark)?;
        assert_eq!(reader.next().await?, Some(("BOOKMARK".to_owned(), String::new(), version)));
        interrupt("secrets", Interrupt::Expire)?;
        interrupt("configmaps", Interrupt::Send("{\"type\":\"OTHER\"}\n".into()))?;
        assert_eq!(reader.types(1).await?, ["OTHER"]);
        interrupt("configmaps", Interrupt::End)?;
        assert_eq!(reader.types(1).await?, ["BOOKMARK"]);
        assert_eq!(reader.next().await?, None);
        let mut reader = Reader::open(&state, &query, None)??;
        interrupt("configmaps", Interrupt::Cut)?;
        assert!(reader.next().await.is_err());
        Ok(())
    })
}

#[test]
fn a_watch_ends_in_time_and_with_its_kind() -> Result<()> {
    run(async |state| {
        let version = state.store().version();
        let query = format!("resourceVersion={version}");
        let mut reader = Reader::open(&state, &format!("{query}&timeoutSeconds=1"), None)??;
        assert_eq!(reader.next().await?, Some(("BOOKMARK".to_owned(), String::new(), version)));
        assert_eq!(reader.next().await?, None);
        let mut reader = Reader::open(&state, &query, None)??;
        let kind = state.store().kind("", "v1", "configmaps").map(Arc::clone).context("it is built in")?;
        state.write(|store| store.uninstall(&kind));
        assert_eq!(reader.next().await?, None);
        Ok(())
    })
}

#[test]
fn faults_change_the_begin_of_a_streaming_list() -> Result<()> {
    run(async |state| {
        let faults = Faults::default();
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let mut reader = Reader::open(&state, query, Some(&faults.add(When::default(), Then::Keep(1))))??;
        assert_eq!(reader.types(2).await?, ["ADDED", "BOOKMARK"]);
        let inserted = faults.add(When::default(), Then::Insert("{\"metadata\":{\"name\":5}}".into()));
        let mut reader = Reader::open(&state, query, Some(&inserted))??;
        assert_eq!(reader.types(4).await?, ["ADDED", "ADDED", "ADDED", "BOOKMARK"]);
        Ok(())
    })
}
