//! Changes of the folder of a running router: each takes effect within a second, without disturbing other hosts.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tests::client::Client;
use tests::folder::{self, replace, route, service};
use tests::netns::Netns;
use tests::nginx::{Nginx, Server};
use tests::sluice::{DataPath, Options, Sluice};
use tests::wait::{PATIENCE, wait_for};

/// Time-out for a change to take effect.
const SECOND: Duration = Duration::from_secs(1);

struct Stage {
    netns: Netns,
    manifests: TempDir,
    nginx: Nginx,
    sluice: Sluice,
}

impl Stage {
    /// Services `one`, `two` (clear text) and `three` (TLS), and what `prepare` puts into the folder.
    fn new(prepare: impl FnOnce(&Path) -> Result<()>) -> Result<Stage> {
        let netns = Netns::new("changes")?;
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let nginx = Nginx::start(
            &netns,
            &[
                Server { name: "one", listen: at(9001), certificate: None },
                Server { name: "two", listen: at(9002), certificate: None },
                Server { name: "three", listen: at(9003), certificate: Some("demo-only-passthrough".into()) },
            ],
        )?;
        let manifests = TempDir::new()?;
        let services = service("one", at(9001)) + &service("two", at(9002)) + &service("three", at(9003));
        fs::write(manifests.path().join("router.yaml"), folder::router() + &services)?;
        prepare(manifests.path())?;
        let sluice = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::Kernel))?;
        Ok(Stage { netns, manifests, nginx, sluice })
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.manifests.path().join(name)
    }

    fn client(&self) -> Client<'_> {
        Client::of(&self.netns, Ipv4Addr::LOCALHOST.into())
    }

    /// First words of the response for a host, or the status code if it is not 200.
    fn served(&self, host: &str) -> Result<String> {
        let answer = self.client().get(&format!("http://{host}:8080/"))?;
        let words: Vec<&str> = answer.body.split(' ').take(2).collect();
        Ok(if answer.status == 200 { words.join(" ") } else { answer.status.to_string() })
    }

    /// Makes a change, and checks that a host is served as expected within a second of it.
    fn change(&self, what: &str, host: &str, expected: &str, change: impl FnOnce() -> Result<()>) -> Result<()> {
        change()?;
        let start = Instant::now();
        let (answered, _) = wait_for(what, PATIENCE, || {
            // Time at which the request began that got the new response.
            let asked = start.elapsed();
            self.served(host).is_ok_and(|served| served == expected).then_some(asked)
        })
        .with_context(|| format!("{host} should be served as {expected:?}, is {:?}", self.served(host)))?;
        ensure!(answered < SECOND, "{what}: took {answered:?}");
        Ok(())
    }
}

#[test]
fn edits_renames_and_deletions_take_effect_and_disturb_no_transfer() -> Result<()> {
    let stage = Stage::new(|folder| {
        fs::write(folder.join("a.yaml"), route("a", "a.apps.test", "one", ""))?;
        let long = route("long", "passthrough.apps.localhost", "three", folder::PASSTHROUGH);
        Ok(fs::write(folder.join("long.yaml"), long)?)
    })?;
    // About fifteen seconds at nginx's two megabytes a second.
    let content: Vec<u8> = (0..30_u32 << 20).map(|i| (i % 251) as u8).collect();
    fs::write(stage.nginx.files().join("long"), &content)?;
    let folder = TempDir::new()?;
    let copy = folder.path().join("copy");

    thread::scope(|scope| {
        let url = "https://passthrough.apps.localhost:8443/file/long";
        let transfer = scope.spawn(|| stage.client().download(url, &copy));
        wait_for("the transfer has begun", PATIENCE, || fs::metadata(&copy).ok().filter(|file| file.len() > 0))?;

        assert_eq!(stage.served("a.apps.test")?, "nginx one");
        let a = stage.path("a.yaml");
        stage.change("a file is replaced", "a.apps.test", "nginx two", || {
            replace(&a, &route("a", "a.apps.test", "two", ""))
        })?;
        stage.change("a file is written in place", "a.apps.test", "nginx one", || {
            Ok(fs::write(&a, route("a", "a.apps.test", "one", ""))?)
        })?;
        stage.change("a host is changed", "b.apps.test", "nginx one", || {
            replace(&a, &route("a", "b.apps.test", "one", ""))
        })?;
        assert_eq!(stage.served("a.apps.test")?, "503", "the old host is gone with it");
        stage.change("a file is renamed out of sight", "b.apps.test", "503", || {
            Ok(fs::rename(&a, stage.path("a.yaml.off"))?)
        })?;
        stage.change("a file is renamed into sight", "b.apps.test", "nginx one", || {
            fs::create_dir(stage.path("team"))?;
            Ok(fs::rename(stage.path("a.yaml.off"), stage.path("team/b.yaml"))?)
        })?;
        stage.change("a file is added to a new subfolder", "c.apps.test", "nginx two", || {
            Ok(fs::write(stage.path("team/c.yaml"), route("c", "c.apps.test", "two", ""))?)
        })?;
        stage.change("a file is deleted", "b.apps.test", "503", || Ok(fs::remove_file(stage.path("team/b.yaml"))?))?;
        stage.change("a folder is deleted", "c.apps.test", "503", || Ok(fs::remove_dir_all(stage.path("team"))?))?;

        assert!(!transfer.is_finished(), "the transfer was under way all the time");
        transfer.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    })?;
    let copied = fs::read(&copy)?;
    assert!(copied == content, "{} of {} bytes arrived, or not the same ones", copied.len(), content.len());
    Ok(())
}

/// As the kubelet updates a mounted ConfigMap: a new folder, and a symbolic link to it that replaces the old one by a
/// rename.
#[test]
fn a_symlink_swap_takes_effect_as_a_whole() -> Result<()> {
    let version = |folder: &Path, name: &str, to: &str| -> Result<()> {
        let data = folder.join("mount").join(name);
        fs::create_dir_all(&data)?;
        fs::write(data.join("x.yaml"), route("x", "x.apps.test", to, ""))?;
        fs::write(data.join("y.yaml"), route("y", "y.apps.test", to, ""))?;
        symlink(name, folder.join("mount/..data_tmp"))?;
        Ok(fs::rename(folder.join("mount/..data_tmp"), folder.join("mount/..data"))?)
    };
    let stage = Stage::new(|folder| {
        version(folder, "..2026_01_01", "one")?;
        symlink("..data/x.yaml", folder.join("mount/x.yaml"))?;
        Ok(symlink("..data/y.yaml", folder.join("mount/y.yaml"))?)
    })?;
    assert_eq!((stage.served("x.apps.test")?, stage.served("y.apps.test")?), ("nginx one".into(), "nginx one".into()));
    stage.change("the link is swapped", "x.apps.test", "nginx two", || {
        version(stage.manifests.path(), "..2026_01_02", "two")?;
        Ok(fs::remove_dir_all(stage.path("mount/..2026_01_01"))?)
    })?;
    assert_eq!(stage.served("y.apps.test")?, "nginx two", "both files changed at once");
    Ok(())
}

#[test]
fn a_bad_object_rejects_itself_and_its_last_good_version_serves() -> Result<()> {
    let stage = Stage::new(|folder| {
        fs::write(folder.join("good.yaml"), route("good", "good.apps.test", "one", ""))?;
        Ok(fs::write(folder.join("bad.yaml"), route("bad", "bad.apps.test", "one", ""))?)
    })?;
    assert_eq!(stage.served("bad.apps.test")?, "nginx one");

    let path_on_passthrough = "  path: /no\n  tls: {termination: passthrough}\n";
    replace(&stage.path("bad.yaml"), &route("bad", "bad.apps.test", "two", path_on_passthrough))?;
    wait_for("`get routes` says what is wrong", PATIENCE, || {
        stage.sluice.get("routes").ok().filter(|routes| routes.to_string().contains("spec.path"))
    })?;
    assert_eq!(stage.served("bad.apps.test")?, "nginx one", "the last good version serves");
    wait_for("its status says so too", PATIENCE, || {
        status_files(&stage.sluice)
            .ok()?
            .into_iter()
            .find(|text| text.contains("name: bad") && text.contains("spec.path"))
    })?;

    // A file of invalid YAML, together with a valid change.
    fs::write(stage.path("broken.yaml"), "apiVersion: [")?;
    stage.change("another object changes", "good.apps.test", "nginx two", || {
        replace(&stage.path("good.yaml"), &route("good", "good.apps.test", "two", ""))
    })?;
    stage.change("the bad object is mended", "bad.apps.test", "nginx two", || {
        replace(&stage.path("bad.yaml"), &route("bad", "bad.apps.test", "two", ""))
    })?;
    wait_for("nothing is said against it any more", PATIENCE, || {
        stage.sluice.get("routes").ok().filter(|routes: &Value| !routes.to_string().contains("spec.path"))
    })?;
    Ok(())
}

#[test]
fn what_the_api_server_would_refuse_as_an_update_changes_nothing() -> Result<()> {
    let stage = Stage::new(|folder| Ok(fs::write(folder.join("a.yaml"), route("a", "a.apps.test", "one", ""))?))?;
    let wildcard = route("a", "a.apps.test", "two", "  wildcardPolicy: Subdomain\n");
    let problem = "a.yaml:8:19: Route test/a: spec.wildcardPolicy: Invalid value: \"Subdomain\": field is immutable";
    let of_a = |wanted: &str| {
        let rows = stage.sluice.get("routes").ok()?;
        rows.as_array()?.iter().find(|row| row["name"] == "a" && row.to_string().contains(wanted)).cloned()
    };

    replace(&stage.path("a.yaml"), &wildcard)?;
    let (row, _) = wait_for("`get routes` says what is wrong", PATIENCE, || of_a("spec.wildcardPolicy"))?;
    assert_eq!(row["state"], "stale", "{row}");
    assert_eq!(stage.served("a.apps.test")?, "nginx one", "the last good version serves");
    let status = stage.sluice.get("status")?;
    let problems = status["problems"].as_array().context("problems")?;
    assert!(problems.iter().any(|text| text.as_str().is_some_and(|text| text.starts_with(problem))), "{status}");
    wait_for("the log says so", PATIENCE, || {
        stage.sluice.output().into_iter().find(|line| line.contains("manifests:") && line.contains(problem))
    })?;

    // After its deletion it is a new object, whose immutable fields may differ.
    stage.change("the route is deleted", "a.apps.test", "503", || Ok(fs::remove_file(stage.path("a.yaml"))?))?;
    fs::write(stage.path("a.yaml"), &wildcard)?;
    let (row, _) = wait_for("the route is created anew", PATIENCE, || of_a("RouteNotAdmitted"))?;
    assert_eq!(
        (&row["state"], &row["message"]),
        (&"rejected".into(), &"wildcard routes are not allowed".into()),
        "{row}"
    );
    Ok(())
}

fn status_files(sluice: &Sluice) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let mut folders = vec![sluice.state().join("status")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                texts.push(fs::read_to_string(path)?);
            }
        }
    }
    Ok(texts)
}

#[test]
fn anomalies_are_logged_once() -> Result<()> {
    let foreign = |name: &str| {
        format!(
            "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {{namespace: demo, name: {name}}}\n\
             spec:\n  ingressClassName: nginx\n  virtualhost: {{fqdn: {name}.test}}\n  routes: [{{services: [{{name: one, \
             port: 80}}]}}]\n---\n"
        )
    };
    let stage = Stage::new(|folder| {
        fs::write(folder.join("proxy.yaml"), foreign("first"))?;
        Ok(fs::write(folder.join("lost.yaml"), route("lost", "lost.apps.test", "nowhere", ""))?)
    })?;
    let told = |text: &str| stage.sluice.output().iter().filter(|line| line.contains(text)).count();
    let (class, absent) =
        ("spec.ingressClassName: it is of ingress class \"nginx\"", "Service test/nowhere does not exist");
    wait_for("the warnings", PATIENCE, || (told(class) == 1 && told(absent) == 1).then_some(()))?;

    fs::write(stage.path("second.yaml"), foreign("second"))?;
    wait_for("what the change made odd", PATIENCE, || (told("HTTPProxy demo/second: ") == 1).then_some(()))?;
    assert_eq!((told("HTTPProxy demo/first: "), told(absent)), (1, 1), "{:#?}", stage.sluice.output());
    Ok(())
}
