//! Many readers of one API server, each with a connection of its own: what the agents of many nodes are to it. `cargo xtask
//! bench cluster` runs it.
//!
//! Arguments: a kubeconfig, a number of readers, and the name of a Route. Prints `listed` when every reader has listed every
//! kind, and `changed` when every one has the Route in the namespace `test`; runs until it is killed.
#![allow(clippy::print_stdout, reason = "the program that runs it reads its output")]

use std::future::pending;
use std::path::PathBuf;

use anyhow::{Context, Result};
use router::source::cluster::ClusterOptions;
use router::source::{Source, SourceOptions};
use router_api::defaults::Defaults;
use router_model::object::ObjectKey;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().context("usage: readers KUBECONFIG COUNT ROUTE");
    let (kubeconfig, count, route) = (PathBuf::from(argument()?), argument()?.parse()?, argument()?);
    let options = ClusterOptions { kubeconfig: Some(kubeconfig), namespaces: Vec::new(), snapshot: None };
    let mut opening = JoinSet::new();
    for _ in 0..count {
        let options = SourceOptions::Cluster(options.clone());
        opening.spawn(async move { Source::open(&options, Defaults::default()).await });
    }
    let mut readers = Vec::new();
    while let Some(opened) = opening.join_next().await {
        let (source, _) = opened??;
        readers.push(source.watch().0);
    }
    println!("listed");
    let key = ObjectKey::new("test", &route);
    for reader in &mut readers {
        reader.wait_for(|snapshot| snapshot.resources.routes.get(&key).is_some()).await?;
    }
    println!("changed");
    pending().await
}
