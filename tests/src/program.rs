//! Clients and servers that are built on first use; their sources are in `tests/programs`.
//!
//! Each is started as `server ARGUMENTS`, and prints "ready" when it listens, or as `client ARGUMENTS`, and prints
//! JSON.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::netns::Netns;
use crate::process::Process;
use crate::wait::PATIENCE;
use crate::{command, workspace};

/// Debian's Go libraries, as a `GOPATH`.
const GO_LIBRARIES: &str = "/usr/share/gocode";
/// Debian's Java libraries.
const JARS: &str = "/usr/share/java";
/// Dependencies of grpc-java for HTTP/2 by netty and TLS by OpenSSL: Debian's netty does not support ALPN of the JDK's
/// TLS.
const GRPC_JAVA: [&str; 16] = [
    "grpc-api",
    "grpc-context",
    "grpc-core",
    "grpc-netty",
    "grpc-stub",
    "guava",
    "netty-buffer",
    "netty-codec",
    "netty-codec-http",
    "netty-codec-http2",
    "netty-common",
    "netty-handler",
    "netty-resolver",
    "netty-tcnative",
    "netty-transport",
    "perfmark-api",
];

/// A built program.
#[derive(Clone)]
pub struct Program {
    name: String,
    file: PathBuf,
    /// Arguments before `server` or `client`.
    arguments: Vec<OsString>,
}

impl Program {
    /// A program built by cargo.
    pub fn built(file: impl Into<PathBuf>) -> Program {
        let file = file.into();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Program { name, file, arguments: Vec::new() }
    }

    /// gRPC streams by Debian's grpc-go.
    ///
    /// # Errors
    /// When it cannot be built; the error has its output.
    pub fn grpc_go() -> Result<Program> {
        static BUILT: OnceLock<Result<Program, String>> = OnceLock::new();
        once(&BUILT, || go("grpc_streams"))
    }

    /// gRPC streams by Debian's grpc-java.
    ///
    /// # Errors
    /// When it cannot be built; the error has its output.
    pub fn grpc_java() -> Result<Program> {
        static BUILT: OnceLock<Result<Program, String>> = OnceLock::new();
        once(&BUILT, || java("GrpcStreams", &GRPC_JAVA))
    }

    /// Starts it as a server and waits until it reports readiness.
    ///
    /// # Errors
    /// When it does not become ready; the error has its output.
    pub fn server(&self, netns: &Netns, arguments: &[&str]) -> Result<Process> {
        let mut process = Process::start(&self.name, self.command(netns, "server")?.args(arguments))?;
        process.wait_for_line("ready", PATIENCE)?;
        Ok(process)
    }

    /// Runs it as a client to its end; returns its JSON output.
    ///
    /// # Errors
    /// When it fails; the error has its output.
    pub fn client(&self, netns: &Netns, arguments: &[&str]) -> Result<Value> {
        let output = command::output(self.command(netns, "client")?.args(arguments))?;
        let text = String::from_utf8(output.stdout)?;
        serde_json::from_str(&text).with_context(|| format!("{} printed no JSON: {text}", self.name))
    }

    fn command(&self, netns: &Netns, role: &str) -> Result<Command> {
        let mut command = netns.command(&self.file)?;
        command.args(&self.arguments).arg(role);
        Ok(command)
    }
}

fn once(built: &'static OnceLock<Result<Program, String>>, build: impl FnOnce() -> Result<Program>) -> Result<Program> {
    built.get_or_init(|| build().map_err(|error| format!("{error:#}"))).clone().map_err(anyhow::Error::msg)
}

/// A folder next to cargo's output.
fn folder(name: &str) -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    // …/target/<profile>/deps/<test>-<hash>
    Ok(test.ancestors().nth(3).context("a test is not where cargo puts tests")?.join(name))
}

fn source(file: &str) -> PathBuf {
    workspace().join("tests/programs").join(file)
}

/// Caches the compiled libraries.
fn go(name: &str) -> Result<Program> {
    let folder = folder("go")?;
    let file = folder.join(name);
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&file).arg(source(name).with_extension("go")).current_dir(Path::new("/"));
    go.env("GO111MODULE", "off").env("GOPATH", GO_LIBRARIES).env("GOCACHE", folder.join("cache")).env("GOFLAGS", "");
    command::output(&mut go)?;
    Ok(Program::built(file))
}

fn java(class: &str, jars: &[&str]) -> Result<Program> {
    let folder = folder("java")?;
    let jars: Vec<PathBuf> = jars.iter().map(|jar| Path::new(JARS).join(jar).with_extension("jar")).collect();
    let classes = std::env::join_paths([folder.clone()].iter().chain(&jars))?;
    let mut javac = Command::new("javac");
    javac.arg("-d").arg(&folder).arg("-cp").arg(&classes).arg(source(class).with_extension("java"));
    command::output(&mut javac)?;
    std::fs::copy(tcnative()?, folder.join("libnetty_tcnative.so"))?;
    let mut libraries = OsString::from("-Djava.library.path=");
    libraries.push(&folder);
    // Flags for a fast start and few threads.
    let mut arguments: Vec<OsString> = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"].map(OsString::from).into();
    arguments.extend([libraries, "-cp".into(), classes, class.into()]);
    Ok(Program { name: class.to_owned(), file: "java".into(), arguments })
}

/// Debian's library, which is named differently than netty expects; it only loads under netty's name.
fn tcnative() -> Result<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib")?.flatten();
    let mut files = folders.map(|folder| folder.path().join("jni/libnetty-tcnative.so"));
    files.find(|file| file.is_file()).context("there is no jni/libnetty-tcnative.so: install libnetty-tcnative-jni")
}
