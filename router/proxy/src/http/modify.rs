//! Executes `RequestHeaderModifier` and `ResponseHeaderModifier` of rules and backends (Gateway API,
//! `HTTPHeaderFilter`).

use http::{HeaderMap, HeaderName, HeaderValue};
use router_table::header_modifier::HeaderModifier;

use super::actions::is_framing;

/// Executes modifiers in order; each sets, then adds, then removes. Framing and connection-specific fields are not
/// changed; invalid names and values are ignored.
pub fn modify(modifiers: &[HeaderModifier], headers: &mut HeaderMap) {
    for HeaderModifier { set, add, remove } in modifiers {
        for (name, value) in set.iter().filter_map(|(name, value)| field(name, value)) {
            headers.insert(name, value);
        }
        for (name, value) in add.iter().filter_map(|(name, value)| field(name, value)) {
            headers.append(name, value);
        }
        for name in remove.iter().filter_map(|name| name_of(name)) {
            headers.remove(name);
        }
    }
}

fn field(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    Some((name_of(name)?, HeaderValue::from_str(value).ok()?))
}

fn name_of(name: &str) -> Option<HeaderName> {
    HeaderName::try_from(name).ok().filter(|name| !is_framing(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(std::sync::Arc<str>, std::sync::Arc<str>)> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn each_modifier_sets_adds_and_removes() {
        let cases: &[(HeaderModifier, &[(&str, &str)])] = &[
            (HeaderModifier::default(), &[("x-a", "1"), ("x-a", "2"), ("x-b", "3"), ("content-length", "5")]),
            (
                HeaderModifier { set: pairs(&[("X-A", "new"), ("x-c", "c")]), ..Default::default() },
                &[("x-a", "new"), ("x-b", "3"), ("x-c", "c"), ("content-length", "5")],
            ),
            (
                HeaderModifier { add: pairs(&[("x-B", "4"), ("x-c", "c")]), ..Default::default() },
                &[("x-a", "1"), ("x-a", "2"), ("x-b", "3"), ("x-b", "4"), ("x-c", "c"), ("content-length", "5")],
            ),
            (
                HeaderModifier { remove: vec!["X-A".into(), "x-none".into()], ..Default::default() },
                &[("x-b", "3"), ("content-length", "5")],
            ),
            (
                HeaderModifier {
                    set: pairs(&[("x-a", "s"), ("transfer-encoding", "chunked")]),
                    add: pairs(&[("x-a", "t"), ("connection", "x-b"), ("x-bad", "a\nb"), ("bad name", "x")]),
                    remove: vec!["x-b".into(), "content-length".into()],
                },
                &[("x-a", "s"), ("x-a", "t"), ("content-length", "5")],
            ),
        ];
        for (modifier, expected) in cases {
            let mut headers = fields(&[("x-a", "1"), ("x-a", "2"), ("x-b", "3"), ("content-length", "5")]);
            modify(std::slice::from_ref(modifier), &mut headers);
            assert_eq!(headers, fields(expected), "{modifier:?}");
        }
    }

    #[test]
    fn later_modifiers_see_what_earlier_ones_made() {
        let set = HeaderModifier { set: pairs(&[("x-a", "1")]), ..Default::default() };
        let add = HeaderModifier { add: pairs(&[("x-a", "2")]), ..Default::default() };
        let mut headers = HeaderMap::new();
        modify(&[set, add], &mut headers);
        assert_eq!(headers, fields(&[("x-a", "1"), ("x-a", "2")]));
    }
}
