//! Every row of the table of `docs/gateway-api.md` names a test whose comment names the row's conformance test.

const DOCUMENT: &str = include_str!("../../../../docs/gateway-api.md");
const MODULES: [(&str, &str); 8] = [
    ("filters", include_str!("filters.rs")),
    ("gateways", include_str!("gateways.rs")),
    ("grpc_routes", include_str!("grpc_routes.rs")),
    ("http_matching", include_str!("http_matching.rs")),
    ("http_references", include_str!("http_references.rs")),
    ("http_routes", include_str!("http_routes.rs")),
    ("listeners", include_str!("listeners.rs")),
    ("tls_routes", include_str!("tls_routes.rs")),
];

#[test]
fn every_row_names_a_test_whose_comment_names_it() {
    let (_, table) = DOCUMENT.split_once("| suite | ours | holds |\n|---|---|---|\n").unwrap();
    let mut rows = 0;
    for row in table.lines() {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, ours, _] = cells[..] else { panic!("{row}") };
        let (module, function) = ours.trim_matches('`').split_once("::").unwrap();
        let (_, source) = MODULES.iter().find(|(known, _)| *known == module).unwrap();
        let (before, _) = source.split_once(&format!("fn {function}(")).unwrap_or_else(|| panic!("{ours}"));
        let comment = before.rsplit("\n\n").next().unwrap();
        let words: Vec<&str> = comment.split(|c: char| !c.is_alphanumeric()).collect();
        assert!(words.contains(&name), "{name}: {comment}");
        rows += 1;
    }
    // 12 of Gateways, 25 of HTTPRoutes, 13 of TLSRoutes, 4 of GRPCRoutes.
    assert_eq!(rows, 54);
}
