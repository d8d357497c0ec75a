//! Container images without an engine or a registry: archives of the OCI image layout (opencontainers/image-spec), which
//! `ctr images import` reads. The same files give the same bytes.

mod tar;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::Archive;

/// A file of an image: where it is in the image, and here.
pub type File<'a> = (&'a str, &'a Path);

/// Writes an image with one layer of executable files; `entrypoint` is what it runs.
///
/// # Errors
/// When a file cannot be read, or the image not written.
pub fn write(to: &Path, name: &str, entrypoint: &[&str], files: &[File]) -> Result<()> {
    let mut layer = Archive::default();
    for (place, file) in files {
        let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        layer.program(place.trim_start_matches('/'), &bytes)?;
    }
    let mut blobs = Blobs::default();
    let layer = blobs.add("application/vnd.oci.image.layer.v1.tar", layer.finish());
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {"Entrypoint": entrypoint},
        // Digests of the layers before compression; this one is not compressed.
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    });
    let config = blobs.add("application/vnd.oci.image.config.v1+json", config.to_string().into_bytes());
    let media = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": media, "config": config, "layers": [layer]});
    let mut manifest = blobs.add(media, manifest.to_string().into_bytes());
    manifest["platform"] = json!({"architecture": architecture(), "os": "linux"});
    manifest["annotations"] = json!({"io.containerd.image.name": name});
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});

    let mut image = Archive::default();
    image.text("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    image.text("index.json", index.to_string().as_bytes())?;
    for (digest, bytes) in blobs.0 {
        image.text(&format!("blobs/sha256/{digest}"), &bytes)?;
    }
    fs::write(to, image.finish()).with_context(|| format!("writing {}", to.display()))
}

/// Contents by digest, in the order in which they were added.
#[derive(Default)]
struct Blobs(Vec<(String, Vec<u8>)>);

impl Blobs {
    /// Adds one; returns its descriptor.
    fn add(&mut self, media: &str, bytes: Vec<u8>) -> Value {
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let descriptor = json!({"mediaType": media, "digest": format!("sha256:{digest}"), "size": bytes.len()});
        self.0.push((digest, bytes));
        descriptor
    }
}

/// This machine's architecture by Go's name.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
