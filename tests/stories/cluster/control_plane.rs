//! The control plane: its objects, clients and faults.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::{Method, StatusCode};
use serde_json::json;
use tests::cluster::{ControlPlane, Write, aggregated, kubectl};
use tests::command;
use tests::echo::{Answer, Backend, Echo, Speaks};
use tests::netns::Netns;
use tests::stream::joined;
use tests::wait::{PATIENCE, wait_for};

/// ConfigMaps of the default namespace.
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn an_object_outlives_its_api_server() -> Result<()> {
    let mut plane = ControlPlane::start()?;
    let named = |name: &str| json!({"metadata": {"name": name}, "data": {"key": "value"}});
    let made = plane.api().create(MAPS, &named("kept"))?;
    plane.kill_api_server()?;
    assert!(plane.api().get("/readyz").is_err(), "an API server answers after it was killed");
    assert!(plane.kill_api_server().is_err(), "a second one was killed");
    plane.start_api_server(&[])?;
    let kept = plane.api().get(&format!("{MAPS}/kept"))?;
    assert_eq!(kept, made);
    plane.api().create(MAPS, &named("next"))?;
    Ok(())
}

#[test]
fn a_restored_backup_of_etcd_has_the_objects_of_then() -> Result<()> {
    let mut plane = ControlPlane::start()?;
    let names = |plane: &ControlPlane| -> Result<Vec<String>> {
        let list = plane.api().get(&format!("{MAPS}?labelSelector=backup"))?;
        let items = list["items"].as_array().context("a list has items")?.iter();
        Ok(items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect())
    };
    let make = |plane: &ControlPlane, name: &str| {
        plane.api().create(MAPS, &json!({"metadata": {"name": name, "labels": {"backup": ""}}})).map(drop)
    };
    make(&plane, "before")?;
    plane.kill_api_server()?;
    plane.kill_etcd()?;
    let backup = plane.data().with_extension("backup");
    command::output(Command::new("cp").arg("-a").arg(plane.data()).arg(&backup))?;
    plane.start_etcd()?;
    plane.start_api_server(&[])?;
    make(&plane, "after")?;
    assert_eq!(names(&plane)?, ["after", "before"]);
    plane.kill_api_server()?;
    plane.kill_etcd()?;
    fs::remove_dir_all(plane.data())?;
    fs::rename(backup, plane.data())?;
    plane.start_etcd()?;
    plane.start_api_server(&[])?;
    assert_eq!(names(&plane)?, ["before"]);
    Ok(())
}

#[test]
fn writes_are_counted_with_their_clients_and_answers() -> Result<()> {
    let plane = ControlPlane::shared()?;
    let made = plane.api().create(MAPS, &json!({"metadata": {"name": "counted"}}))?;
    let path = format!("{MAPS}/counted");
    let version = &made["metadata"]["resourceVersion"];
    let patch = json!({"metadata": {"resourceVersion": version}, "data": {"key": "value"}});
    plane.api().patch(&path, &patch)?;
    let stale = patch.to_string();
    let other = plane.client(plane.netns())?;
    let (status, _) = other.request(Method::PATCH, &path, "application/merge-patch+json", stale)?;
    assert_eq!(status, StatusCode::CONFLICT, "a patch of an old version is accepted");
    plane.api().get(&path)?;
    plane.api().delete(&path)?;
    let write = |verb: &str, code| Write {
        user: "admin".to_owned(),
        agent: "tests".to_owned(),
        verb: verb.to_owned(),
        resource: "configmaps".to_owned(),
        object: "default/counted".to_owned(),
        code,
    };
    let expected = [write("create", 201), write("patch", 200), write("patch", 409), write("delete", 200)];
    let counted = || -> Result<Vec<Write>> {
        let writes = plane.writes()?.into_iter();
        Ok(writes.filter(|write| write.object == "default/counted").collect())
    };
    // The log of an answer may be written after the answer.
    let (writes, _) =
        wait_for("all writes are logged", PATIENCE, || counted().ok().filter(|writes| writes.len() >= expected.len()))?;
    assert_eq!(writes, expected);
    Ok(())
}

#[test]
fn many_objects_are_created_and_deleted() -> Result<()> {
    let plane = ControlPlane::shared()?;
    let of = |number: usize| json!({"metadata": {"name": format!("many-{number}"), "labels": {"many": ""}}});
    plane.create_all(MAPS, &(0..1000).map(of).collect::<Vec<_>>())?;
    let count = || -> Result<usize> {
        let list = plane.api().get(&format!("{MAPS}?labelSelector=many"))?;
        Ok(list["items"].as_array().context("a list has items")?.len())
    };
    assert_eq!(count()?, 1000);
    assert!(plane.create_all(MAPS, &[of(1000), of(0)]).is_err(), "an object was created twice");
    plane.api().delete(&format!("{MAPS}?labelSelector=many"))?;
    assert_eq!(count()?, 0);
    Ok(())
}

#[test]
fn a_watch_waits_for_an_object() -> Result<()> {
    let plane = ControlPlane::shared()?;
    let writer = plane.client(plane.netns())?;
    let seen = std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| plane.api().wait_for(MAPS, "awaited", PATIENCE, |map| map["data"]["round"] == "3"));
        writer.create(MAPS, &json!({"metadata": {"name": "awaited"}}))?;
        for round in 1..=3 {
            writer.patch(&format!("{MAPS}/awaited"), &json!({"data": {"round": round.to_string()}}))?;
        }
        joined(waiting)
    })?;
    assert_eq!(seen["data"], json!({"round": "3"}));
    Ok(())
}

#[test]
fn an_account_has_the_rights_that_it_is_given() -> Result<()> {
    let plane = ControlPlane::shared()?;
    plane.apply("{apiVersion: v1, kind: Namespace, metadata: {name: accounts}}")?;
    let accounts = "/api/v1/namespaces/accounts/serviceaccounts";
    plane.api().wait_for(accounts, "default", PATIENCE, |_| true)?;
    let kubeconfig = plane.kubeconfig_of("accounts", "default")?;
    let may = || -> Result<bool> {
        let mut kubectl = kubectl::command(plane.netns(), &kubeconfig)?;
        // An answer of "no" is a failure of the program.
        let answer = kubectl.args(["auth", "can-i", "list", "services", "--namespace", "accounts"]).output()?;
        Ok(String::from_utf8(answer.stdout)?.trim() == "yes")
    };
    ensure!(!may()?, "an account without a role may list Services");
    plane.kubectl(&[
        "create",
        "rolebinding",
        "view",
        "--namespace",
        "accounts",
        "--clusterrole",
        "view",
        "--serviceaccount",
        "accounts:default",
    ])?;
    ensure!(may()?, "an account may not list Services with the role `view`");
    Ok(())
}

#[test]
fn a_member_that_is_cut_off_keeps_its_connection() -> Result<()> {
    /// Time in which a connection must not be made.
    const SILENCE: Duration = Duration::from_millis(700);
    let plane = ControlPlane::shared()?;
    let member = Netns::new("member")?;
    let address = plane.network().join(&member, "eth0")?;
    let api = plane.client(&member)?;
    let version = api.get("/version")?;
    let connect = |within| member.run(|| Ok(TcpStream::connect_timeout(&plane.server(), within)));
    let cut = plane.network().cut(address)?;
    let refused = connect(SILENCE)?;
    ensure!(refused.as_ref().is_err_and(|error| error.kind() == ErrorKind::TimedOut), "{refused:?}");
    drop(cut);
    connect(PATIENCE)??;
    assert_eq!(api.get("/version")?, version);
    Ok(())
}

#[test]
fn an_aggregated_server_is_asked_in_the_name_of_the_client() -> Result<()> {
    let plane = ControlPlane::shared()?;
    let server = Netns::new("aggregated")?;
    let address = SocketAddr::new(plane.network().join(&server, "eth0")?.into(), 8443);
    let group = "aggregated.test";
    let backend = Backend {
        name: "aggregated".to_owned(),
        address,
        speaks: Speaks::Http,
        tls: Some(plane.credentials().server("aggregated", &[&aggregated::host(group)])?.server(&[])?),
        proxied: false,
        answer: Answer {
            fields: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body: Some(r#"{"kind": "Answer"}"#.to_owned()),
            ..Answer::default()
        },
    };
    let echo = Echo::start(&server, vec![backend])?;
    aggregated::register(plane.api(), group, "v1", address, &plane.credentials().ca_pem())?;
    let path = format!("/apis/{group}/v1/namespaces/demo/things");
    assert_eq!(plane.api().get(&path)?, json!({"kind": "Answer"}));
    let seen = echo.log().since(0);
    let asked = seen.iter().find(|(_, seen)| seen.request.contains(&path)).context("the server was not asked")?;
    let user = asked.1.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("x-remote-user"));
    assert_eq!(user.map(|(_, user)| user.as_str()), Some("admin"));
    Ok(())
}

#[test]
fn a_control_plane_leaves_nothing_behind() -> Result<()> {
    let plane = ControlPlane::start()?;
    let mut left: Vec<PathBuf> = plane.processes().iter().map(|id| Path::new("/proc").join(id.to_string())).collect();
    assert_eq!(left.len(), 3, "etcd, the API server and the controllers run");
    left.extend([plane.netns(), plane.network().netns()].map(|netns| Path::new("/run/netns").join(netns.name())));
    left.push(plane.kubeconfig().to_owned());
    for path in &left {
        assert!(path.exists(), "{} is missing", path.display());
    }
    drop(plane);
    left.retain(|path| path.exists());
    assert!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}
