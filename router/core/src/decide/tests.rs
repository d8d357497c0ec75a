//! Which requests are preflights.

use super::*;
use crate::explain::Query;
use crate::explain::asked::Asked;

#[test]
fn only_options_with_its_two_fields_is_a_preflight() {
    let asks = |method: &str, fields: &[&str]| {
        let query = Query::parse("http://a.test/").unwrap().with_method(method).unwrap();
        let query = fields.iter().fold(query, |query, field| query.with_header(field).unwrap());
        preflight(&Asked::of(&query))
    };
    let fields = ["Origin: https://a.test", "Access-Control-Request-Method: PUT"];
    assert_eq!(asks("OPTIONS", &fields).as_deref(), Some("PUT"));
    assert_eq!(asks("GET", &fields), None);
    assert_eq!(asks("OPTIONS", &fields[..1]), None);
    assert_eq!(asks("OPTIONS", &fields[1..]), None);
}
