//! Status files: names, reading, writing whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use serde_json::{Value, json};

/// Longest name before it is cut and told apart by its hash; file systems allow 255 bytes.
const MAX_NAME: usize = 200;

/// Statuses by object, of the files that can be read.
pub fn read_all(folder: &Path) -> BTreeMap<ObjectRef, Value> {
    let mut stored = BTreeMap::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return stored,
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "earlier statuses cannot be read");
            return stored;
        }
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        // Only files that this writer would write under the same name are its own.
        let read = fs::read_to_string(entry.path()).ok().and_then(|text| parse(&text));
        if let Some((object, status)) = read.filter(|(object, _)| *name == *file_name(object)) {
            stored.insert(object, status);
        }
    }
    stored
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
    let mut file = fs::File::create(&temporary)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(&temporary, folder.join(name))
}

/// Removes an object's status; that there is none is as good.
pub fn remove(folder: &Path, object: &ObjectRef) -> io::Result<()> {
    match fs::remove_file(folder.join(file_name(object))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// `route.<namespace>.<name>.yaml`, and without namespace for what lives in none. Neither kinds nor namespaces have dots, so no two objects share a name; what no
/// Kubernetes name has (a refused object may have anything) is written as `%XX`.
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
        // All ASCII, so it can be cut anywhere.
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
