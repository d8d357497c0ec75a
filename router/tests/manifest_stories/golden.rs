//! The folders of `tests/manifests`, and the text files beside their manifests.

use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

/// The folders: one for each API, with one subfolder for each story.
const APIS: [&str; 3] = ["contour", "gateway-api", "openshift"];

/// A folder of manifests.
pub struct Story {
    /// API and name: `gateway-api/grpc`.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
}

impl Story {
    /// The story of this name.
    pub fn named(name: &str) -> Story {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests").join(name);
        Story { name: name.to_owned(), folder }
    }

    /// The content of one of its golden files; empty if the file does not exist.
    pub fn golden(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_default()
    }
}

/// All stories, by API and name.
pub fn stories() -> Vec<Story> {
    let mut all = Vec::new();
    for api in APIS {
        let before = all.len();
        for entry in fs::read_dir(Story::named(api).folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            all.push(Story::named(&format!("{api}/{name}")));
        }
        assert!(all.len() - before >= 5, "stories of {api} are missing");
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Compares the result of every story with this file of its folder, and fails with all differences. With
/// `UPDATE_GOLDENS`, writes the files instead.
pub fn expect_of_all(file: &str, find: impl Fn(&Story) -> String) {
    let mut differences = String::new();
    for story in stories() {
        let (golden, found) = (story.golden(file), find(&story));
        assert!(!found.contains("PRIVATE KEY"), "{} prints a key:\n{found}", story.name);
        if golden == found {
            continue;
        }
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(story.folder.join(file), found).unwrap();
            continue;
        }
        let name = format!("{}/{file}", story.name);
        let diff = TextDiff::from_lines(&golden, &found);
        differences += &diff.unified_diff().header(&name, "what was found").to_string();
    }
    assert!(differences.is_empty(), "golden files differ; UPDATE_GOLDENS=1 rewrites them:\n{differences}");
}
