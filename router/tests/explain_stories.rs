//! `sluice explain` on the folders of `tests/manifests`, offline: each answer in full.
//!
//! After a wanted change, `UPDATE_GOLDENS=1 cargo test -p router --test explain_stories` writes them anew; read the
//! difference.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;

use router_proxy::UpstreamTls;

use router::cli::explain::offline;
use router_core::explain::Query;
use router_core::translate::Settings;

/// Folder and questions.
const STORIES: &[(&str, &[&str])] = &[
    (
        "contested-host",
        &[
            "http://shop.example.test/",
            "http://shop.example.test/cart/1",
            "https://secure.example.test/",
            "http://home.example.test/",
            "http://hmoe.example.test/",
        ],
    ),
    (
        "shards",
        &[
            "http://cart.apps.example.test/",
            "http://cart.internal.example.test:8080/",
            "http://blog.example.test:8080/",
            "http://cart.internal.example.test:9090/",
        ],
    ),
    ("wildcards", &["http://www.d.test/", "https://other.d.test/", "x.y.d.test"]),
];

#[test]
fn explain_tells_every_decision_about_the_stories() {
    for (story, queries) in STORIES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests").join(story);
        let (trust, mut found) = (UpstreamTls::new(None, None), String::new());
        for text in *queries {
            let explanation = offline(&folder, &Settings::default(), &trust, &Query::parse(text).unwrap()).unwrap();
            found.push_str(&format!("$ sluice explain {text}\n{explanation}\n"));
            let json = serde_json::to_value(&explanation).unwrap();
            assert_eq!(json["served"], explanation.served, "the JSON form says the same");
        }
        let path = folder.join("explain.txt");
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(&path, &found).unwrap();
            continue;
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(expected == found, "{} differs; found:\n{found}", path.display());
    }
}
