//! Settings from the command line.

use router_translate::settings::Settings;

use super::*;

/// The settings of `sluice validate . ARGUMENT…`, or the error's text.
fn settings(arguments: &[&str]) -> Result<Settings, String> {
    let command = ["sluice", "validate", "."].iter().chain(arguments);
    match Cli::try_parse_from(command).map_err(|error| error.to_string())?.verb {
        Verb::Validate { translation, .. } => Ok(translation.settings()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn domains_are_names_that_a_host_can_have() {
    assert_eq!(settings(&["--cluster-domain", "apps.example"]).unwrap().cluster_domain, "apps.example");
    assert_eq!(settings(&[]).unwrap().cluster_domain, "apps.localhost");
    for option in ["--cluster-domain", "--denied-domains", "--allowed-domains"] {
        for domain in ["", "Upper.example", "*.example", ".example", "a b"] {
            let error = settings(&[option, domain]).expect_err(domain);
            assert!(error.contains(option), "{option} {domain:?}: {error}");
        }
    }
}
