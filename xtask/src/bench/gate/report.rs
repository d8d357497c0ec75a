//! The results as text.

use super::flood::Flood;
use super::route::Route;
use crate::bench::bars::Bar;
use crate::bench::passthrough::groups::{GROUPS, Group};
use crate::bench::passthrough::measure::Column;
use crate::bench::passthrough::ways::Way;

/// Least share of the undisturbed new connections that comes about in the flood.
const KEPT: f64 = 0.8;

/// The table of what the gate costs when nothing happens. The first column is what the others are compared with; without any there
/// is no table.
pub fn at_rest(columns: &[Column], is_measured: impl Fn(&Group) -> bool) -> String {
    if columns.is_empty() {
        return String::new();
    }
    let names: String = columns.iter().map(|column| format!(" {} |", column.way.name())).collect();
    let mut text = format!("| connections at a time |{names}\n|---|{}\n", "---|".repeat(columns.len()));
    for (at, group) in GROUPS.iter().enumerate().filter(|(_, group)| is_measured(group)) {
        for (place, connections) in group.connections.iter().enumerate() {
            text.push_str(&format!("| {}, {connections} ({}) |", group.title, group.unit));
            for column in columns {
                let rate = column.rate(at, place).map(|rate| rate / group.scale);
                let ratio = columns.first().filter(|first| first.way != column.way);
                let ratio = ratio.and_then(|first| column.ratios(first, at, place).median());
                text.push_str(&match (rate, ratio) {
                    (Some(rate), Some(ratio)) => format!(" {rate:.1} ({ratio:.2}) |"),
                    (Some(rate), None) => format!(" {rate:.1} |"),
                    (None, _) => " failed |".to_owned(),
                });
            }
            text.push('\n');
        }
    }
    text
}

/// The table of what a flood leaves.
pub fn in_floods(floods: &[Flood]) -> String {
    let mut text = "| way | route | SYNs/s sent | new connections/s undisturbed | in the flood | kept | failed | ns for a SYN | SYNs/s that saturate a processor |
|---|---|---|---|---|---|---|---|---|
"
    .to_owned();
    for flood in floods {
        let kept = flood.kept().median().map_or("–".to_owned(), |kept| format!("{kept:.2}"));
        let cost = flood.cost().map_or("– | –".to_owned(), |cost| format!("{cost:.0} | {:.2} million", 1e3 / cost));
        text.push_str(&format!(
            "| {} | {} | {:.0} | {:.0} | {:.0} | {kept} | {} | {cost} |\n",
            flood.way.name(),
            flood.route.name(),
            flood.sent(),
            flood.undisturbed(),
            flood.disturbed(),
            flood.failed,
        ));
    }
    text
}

/// Those of the driver's hook.
pub fn bars(floods: &[Flood]) -> Vec<Bar> {
    let promised = [Way::GateNative, Way::CookiesNative];
    let promised = promised.into_iter().flat_map(|way| Route::of(way).iter().map(move |route| (way, *route)));
    promised
        .flat_map(|(way, route)| {
            let flood = floods.iter().find(|flood| (flood.way, flood.route) == (way, route));
            let of = format!("{}, {}", way.name(), route.name());
            [
                Bar {
                    what: format!("{of}: share of new connections that a flood leaves"),
                    promised: format!("≥ {KEPT:.2}"),
                    figure: flood.and_then(|flood| flood.kept().judged(|kept| kept >= KEPT)),
                },
                Bar {
                    what: format!("{of}: connections that failed in a flood"),
                    promised: "0".to_owned(),
                    figure: flood.map(|flood| (flood.failed.to_string(), flood.failed == 0)),
                },
            ]
        })
        .collect()
}
