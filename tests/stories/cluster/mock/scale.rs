//! The mock with very many objects.

use anyhow::{Context, Result};
use serde_json::json;
use tests::cluster::Definitions;
use tests::cluster::mock::{MockApiServer, Options};

use super::client::Client;

#[test]
fn a_hundred_thousand_routes_are_listed_and_watched() -> Result<()> {
    /// Number of Routes.
    const COUNT: usize = 100_000;
    let mock = MockApiServer::start(None, Options { history: 100, ..Options::default() })?;
    mock.install(Definitions::Sluice)?;
    let route = |number: usize| {
        json!({
            "apiVersion": "route.openshift.io/v1",
            "kind": "Route",
            "metadata": {"name": format!("route-{number}"), "namespace": format!("space-{}", number % 100)},
            "spec": {"host": format!("{number}.scale.test"), "to": {"kind": "Service", "name": "web", "weight": 100}},
        })
    };
    for number in 0..COUNT {
        mock.apply(&route(number))?;
    }
    let mut client = Client::connect(&mock)?;
    let (mut listed, mut next) = (0, Some(String::new()));
    while let Some(token) = next {
        let page = client.json(&format!("/apis/route.openshift.io/v1/routes?limit=10000&continue={token}"))?;
        listed += page["items"].as_array().context("a list has items")?.len();
        next = page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
    }
    assert_eq!(listed, COUNT);
    let query = "watch=1&allowWatchBookmarks=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = client.get(&format!("/apis/route.openshift.io/v1/routes?{query}"))?;
    let mut added = 0;
    loop {
        let (what, _) = client.event(&mut watch)?.context("the watch goes on")?;
        if what == "BOOKMARK" {
            break;
        }
        added += 1;
    }
    assert_eq!(added, COUNT);
    mock.delete(&route(7))?;
    assert_eq!(client.event(&mut watch)?, Some(("DELETED".to_owned(), "route-7".to_owned())));
    Ok(())
}
