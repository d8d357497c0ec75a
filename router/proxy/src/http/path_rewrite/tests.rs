//! Rewritten paths and hosts.

use router_table::location::changed;
use router_table::rule::PathChange;

use super::*;

#[test]
fn a_rewritten_path_keeps_its_query_and_its_host() {
    let cases = [
        ("/old/x?y=/old", "/new/x?y=/old"),
        ("/old?", "/new?"),
        ("https://a.test:8443/old/../x", "https://a.test:8443/new/../x"),
    ];
    for (uri, expected) in cases {
        let uri: Uri = uri.parse().unwrap();
        let path = changed(&PathChange::Prefix("/new".into()), "/old", uri.path());
        assert_eq!(rewritten(&uri, path).unwrap(), expected, "{uri}");
    }
    assert_eq!(rewritten(&"/x".parse().unwrap(), "/a b".to_owned()), None);
}
