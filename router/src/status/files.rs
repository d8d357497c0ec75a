//! Status files: names, reading, and atomic writing.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use serde_json::{Value, json};

/// Maximum length of a name; longer ones are truncated and get a hash. File systems allow 255 bytes.
const MAX_NAME: usize = 200;

/// The status in an object's file; `None` if the file does not exist or is invalid.
pub fn read(folder: &Path, object: &ObjectRef) -> Option<Value> {
    let text = fs::read_to_string(folder.join(file_name(object))).ok()?;
    parse(&text).filter(|(owner, _)| owner == object).map(|(_, status)| status)
}

/// The objects that have a file and are not `known`. A file counts only if the writer would use its name for its
/// object.
pub fn others(folder: &Path, known: &BTreeSet<ObjectRef>) -> Vec<ObjectRef> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "earlier statuses cannot be read");
            return Vec::new();
        }
    };
    let known: HashSet<OsString> = known.iter().map(|object| file_name(object).into()).collect();
    let names = entries.flatten().map(|entry| entry.file_name()).filter(|name| !known.contains(name));
    let owner = |name: OsString| {
        let (owner, _) = parse(&fs::read_to_string(folder.join(&name)).ok()?)?;
        (*name == *file_name(&owner)).then_some(owner)
    };
    names.filter_map(owner).collect()
}

/// Writes an object's status.
pub fn write(folder: &Path, object: &ObjectRef, status: &Value) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let name = file_name(object);
    let mut metadata = json!({ "name": &*object.key.name });
    if object.kind.is_namespaced() {
        metadata["namespace"] = json!(&*object.key.namespace);
    }
    let text = serde_saphyr::to_string(&json!({
        "apiVersion": object.kind.api_version(),
        "kind": object.kind.name(),
        "metadata": metadata,
        "status": status,
    }))
    .map_err(io::Error::other)?;
    let temporary = folder.join(format!(".{name}.new"));
    let written = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, folder.join(name)));
    if written.is_err() {
        // A partial file would use space on a full disk.
        drop(fs::remove_file(&temporary));
    }
    written
}

/// Removes an object's file. Returns true if it existed.
pub fn remove(folder: &Path, object: &ObjectRef) -> io::Result<bool> {
    match fs::remove_file(folder.join(file_name(object))) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(error),
    }
}

/// `route.<namespace>.<name>.yaml`; without the namespace for cluster-scoped objects. Kinds and namespaces contain no
/// dots, so names are unique. Characters that are invalid in names of Kubernetes (a rejected object may have any) are
/// written as `%XX`.
pub fn file_name(object: &ObjectRef) -> String {
    let mut name = object.kind.name().to_ascii_lowercase();
    let namespace = object.kind.is_namespaced().then_some(&object.key.namespace);
    for part in namespace.into_iter().chain([&object.key.name]) {
        name.push('.');
        for byte in part.bytes() {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'-' => name.push(char::from(byte)),
                b'.' if std::ptr::eq(part, &object.key.name) => name.push('.'),
                _ => name.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    if name.len() > MAX_NAME {
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        // The name is ASCII, so it can be truncated anywhere.
        name.truncate(MAX_NAME - 17);
        name.push_str(&format!("~{hash:016x}"));
    }
    name.push_str(".yaml");
    name
}

fn parse(text: &str) -> Option<(ObjectRef, Value)> {
    let mut value: Value = serde_saphyr::from_str(text).ok()?;
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let kind = Kind::of(text("/apiVersion")?, text("/kind")?)?;
    let namespace = if kind.is_namespaced() { text("/metadata/namespace")? } else { "" };
    let key = ObjectKey::new(namespace, text("/metadata/name")?);
    let status = value.get_mut("status")?.take();
    Some((ObjectRef { kind, key }, status))
}
