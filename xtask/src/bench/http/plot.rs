//! The ratios to the best peer as bars, in SVG.

use std::fmt::Write as _;

use super::figures::{Column, Figure};
use super::names::Hosts;
use super::results::{Results, rate, tail, work};
use super::ways::{Router, Way};
use crate::bench::programs::Peer;

/// In docs/.
pub const FILE: &str = "benchmarks-http.svg";

/// Size of one part.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 210.0;
/// Room in a part around its bars: left, right, top, bottom.
const MARGINS: [f64; 4] = [34.0, 10.0, 30.0, 24.0];
/// Ratio at the upper edge; a bar beyond is cut there, with its figure.
const TOP: f64 = 2.0;

/// Heading, and the compared value.
type Part = (&'static str, fn(&Figure) -> f64);
const PARTS: [Part; 3] = [
    ("rate, to the best peer's (more is better)", rate),
    ("99th percentile of latency, to that peer's (less is better)", tail),
    ("processor time in the router for each request, to that peer's (less is better)", work),
];

fn colour(way: Way) -> &'static str {
    match (way.router, way.hosts) {
        (Router::Sluice, Hosts::One) => "#0b6e4f",
        (Router::Sluice, Hosts::Many) => "#6bbf59",
        (Router::Peer(Peer::HaProxy), Hosts::One) => "#4f81bd",
        (Router::Peer(Peer::HaProxy), Hosts::Many) => "#84a9d6",
        (Router::Peer(Peer::Nginx), Hosts::One) => "#9bbbe0",
        (Router::Peer(Peer::Nginx), Hosts::Many) => "#c3d7ee",
        (Router::Peer(Peer::Envoy), Hosts::One) => "#c0b4d8",
        (Router::Peer(Peer::Envoy), Hosts::Many) => "#dcd5ea",
    }
}

/// One part for each thing that is compared, and a legend.
pub fn draw(results: &Results) -> String {
    let height = HEIGHT * PARTS.len() as f64 + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (number, part) in PARTS.iter().enumerate() {
        let y = HEIGHT * number as f64;
        svg += &format!("<g transform=\"translate(0 {y})\">\n{}</g>\n", bars(results, *part));
    }
    svg += &format!("<g transform=\"translate(0 {})\">\n{}</g>\n", height - 26.0, legend(&results.columns));
    svg + "</svg>\n"
}

fn bars(results: &Results, (title, read): Part) -> String {
    let [left, right, top, bottom] = MARGINS;
    let (across, down) = (WIDTH - left - right, HEIGHT - top - bottom);
    let level = |ratio: f64| top + down * (1.0 - ratio.min(TOP) / TOP);
    let mut svg = String::new();
    let mut write = |line: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(svg, "{line}");
    };
    write(format!("<text x=\"{left}\" y=\"16\" font-size=\"13\" font-weight=\"bold\">{title}</text>"));
    for ratio in [0.0, 0.5, 1.0, 1.5, 2.0] {
        let (y, ink) = (level(ratio), if ratio == 1.0 { "#555555" } else { "#dddddd" });
        let end = WIDTH - right;
        write(format!("<line x1=\"{left}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{ink}\"/>"));
        write(format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{ratio}</text>", left - 4.0, y + 4.0));
    }
    let measured: Vec<_> = results.measured().collect();
    let cluster = across / measured.len().max(1) as f64;
    let bar = cluster * 0.9 / results.columns.len().max(1) as f64;
    for (at, (place, measure)) in measured.into_iter().enumerate() {
        let begin = left + cluster * (at as f64 + 0.05);
        for (number, column) in results.columns.iter().enumerate() {
            let ratio = results.best_peer(place).and_then(|best| column.ratios(best, place, read).median());
            let Some(ratio) = ratio else { continue };
            let (x, y) = (begin + bar * number as f64, level(ratio));
            write(format!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{}: {ratio:.2}</title></rect>",
                bar - 1.0,
                level(0.0) - y,
                colour(column.way),
                column.way.name(),
            ));
            write(format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"7\" text-anchor=\"middle\">{ratio:.2}</text>",
                x + bar / 2.0,
                y - 2.0
            ));
        }
        let middle = left + cluster * (at as f64 + 0.5);
        write(format!(
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 9.0,
            measure.title
        ));
    }
    svg
}

fn legend(columns: &[Column]) -> String {
    let mut svg = String::new();
    for (number, column) in columns.iter().enumerate() {
        let x = 34.0 + 115.0 * number as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"4\" width=\"14\" height=\"14\" fill=\"{}\"/><text x=\"{}\" y=\"15\">{}</text>",
            colour(column.way),
            x + 20.0,
            column.way.name(),
        );
    }
    svg
}
