//! The results as text.

use super::flood::{CLIENTS, Flood};
use super::route::Route;
use crate::bench::bars::{Bar, Ratios};
use crate::bench::passthrough::groups::{GROUPS, Group};
use crate::bench::passthrough::measure::Column;
use crate::bench::passthrough::ways::Way;

/// Least share of the undisturbed new connections that comes about in the flood.
const KEPT: f64 = 0.8;
/// The same of what is carried, of a gate without a policy.
const IDLE: f64 = 0.98;

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
    let mut text = "| way | route | connections at a time | SYNs/s sent | new connections/s undisturbed | in the flood | kept | failed | ns for a SYN | SYNs/s that saturate a processor |
|---|---|---|---|---|---|---|---|---|---|
"
    .to_owned();
    for flood in floods {
        let kept = flood.kept().median().map_or("–".to_owned(), |kept| format!("{kept:.2}"));
        let cost = flood.cost().map_or("– | –".to_owned(), |cost| format!("{cost:.0} | {:.2} million", 1e3 / cost));
        text.push_str(&format!(
            "| {} | {} | {} | {:.0} | {:.0} | {:.0} | {kept} | {} | {cost} |\n",
            flood.way.name(),
            flood.route.name(),
            flood.clients,
            flood.sent(),
            flood.undisturbed(),
            flood.disturbed(),
            flood.failed,
        ));
    }
    text
}

/// That of a gate without a policy, by the geometric mean of all its ratios in a round. Without columns there is none.
pub fn idle(columns: &[Column], is_measured: impl Fn(&Group) -> bool) -> Option<Bar> {
    let (first, column) = (columns.first()?, columns.iter().find(|column| column.way == Way::GateIdle)?);
    let mut rows = Vec::new();
    for (at, group) in GROUPS.iter().enumerate().filter(|(_, group)| is_measured(group)) {
        rows.extend((0..group.connections.len()).map(|place| column.ratios(first, at, place).0));
    }
    Some(Bar {
        what: "gate, no policy: of what is carried without the gate, the mean of all rows".to_owned(),
        promised: format!("≥ {IDLE:.2}"),
        figure: Ratios(means(&rows)).judged(|kept| kept >= IDLE),
    })
}

/// Geometric means, round by round, of rows that have a ratio for each.
fn means(rows: &[Vec<f64>]) -> Vec<f64> {
    let rounds = rows.iter().map(Vec::len).min().unwrap_or_default();
    let mean = |round: usize| (rows.iter().map(|row| row[round].ln()).sum::<f64>() / rows.len() as f64).exp();
    (0..rounds).map(mean).collect()
}

/// Those of the driver's hook in floods, for every number of clients.
pub fn bars(floods: &[Flood]) -> Vec<Bar> {
    let promised = [Way::GateNative, Way::CookiesNative];
    let promised = promised.into_iter().flat_map(|way| Route::of(way).iter().map(move |route| (way, *route)));
    let promised = promised.flat_map(|(way, route)| CLIENTS.map(|clients| (way, route, clients)));
    promised
        .flat_map(|(way, route, clients)| {
            let flood = floods.iter().find(|flood| (flood.way, flood.route, flood.clients) == (way, route, clients));
            let of = format!("{}, {}, {clients} at a time", way.name(), route.name());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_geometric_and_of_one_round() {
        let means = means(&[vec![0.5, 1.0, 3.0], vec![2.0, 0.81]]);
        assert_eq!(means.len(), 2);
        assert!((means[0] - 1.0).abs() < 1e-9 && (means[1] - 0.9).abs() < 1e-9, "{means:?}");
    }
}
