//! The ratios to the direct way as bars, in SVG.

use std::fmt::Write as _;

use super::groups::{GROUPS, Group};
use super::measure::Column;
use super::ways::Way;

/// In docs/.
pub const FILE: &str = "benchmarks-passthrough.svg";

/// Size of one part.
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 210.0;
/// Parts side by side.
const ACROSS: usize = 3;
/// Room in a part around its bars: left, right, top, bottom.
const MARGINS: [f64; 4] = [34.0, 10.0, 30.0, 24.0];
/// Ratio at the upper edge; a bar beyond is cut there, with its figure.
const TOP: f64 = 1.1;

fn colour(way: Way) -> &'static str {
    match way {
        Way::Direct => "#555555",
        Way::Kernel => "#0b6e4f",
        Way::ByInterface => "#3a9d74",
        Way::Relay => "#6bbf59",
        Way::HaProxy => "#4f81bd",
        Way::Nginx => "#9bbbe0",
        Way::Envoy => "#c0b4d8",
        // No part of the plot.
        Way::GateIdle | Way::GateGeneric | Way::GateNative | Way::CookiesGeneric | Way::CookiesNative => "#d0a060",
    }
}

/// One part for each group of measures, and a legend.
pub fn draw(columns: &[Column]) -> String {
    let Some((direct, ways)) = columns.split_first() else { return String::new() };
    let down = (GROUPS.len() + 1).div_ceil(ACROSS);
    let (width, height) = (WIDTH * ACROSS as f64, HEIGHT * down as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (at, group) in GROUPS.iter().enumerate() {
        svg += &translated(at, &part(at, group, direct, ways));
    }
    svg += &translated(GROUPS.len(), &legend(ways));
    svg + "</svg>\n"
}

fn translated(at: usize, content: &str) -> String {
    let (x, y) = ((at % ACROSS) as f64 * WIDTH, (at / ACROSS) as f64 * HEIGHT);
    format!("<g transform=\"translate({x} {y})\">\n{content}</g>\n")
}

fn part(at: usize, group: &Group, direct: &Column, ways: &[Column]) -> String {
    let [left, right, top, bottom] = MARGINS;
    let (across, down) = (WIDTH - left - right, HEIGHT - top - bottom);
    let level = |ratio: f64| top + down * (1.0 - ratio.min(TOP) / TOP);
    let mut svg = String::new();
    let mut write = |line: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(svg, "{line}");
    };
    write(format!("<text x=\"{left}\" y=\"16\" font-size=\"13\" font-weight=\"bold\">{}</text>", group.title));
    for ratio in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (y, ink) = (level(ratio), if ratio == 1.0 { colour(Way::Direct) } else { "#dddddd" });
        let end = WIDTH - right;
        write(format!("<line x1=\"{left}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{ink}\"/>"));
        write(format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{ratio}</text>", left - 4.0, y + 4.0));
    }
    let cluster = across / group.connections.len() as f64;
    let bar = cluster * 0.84 / ways.len().max(1) as f64;
    for (place, connections) in group.connections.iter().enumerate() {
        let begin = left + cluster * (place as f64 + 0.08);
        for (number, column) in ways.iter().enumerate() {
            let Some(ratio) = column.ratios(direct, at, place).median() else { continue };
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
        let middle = left + cluster * (place as f64 + 0.5);
        write(format!("<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{connections}</text>", HEIGHT - 9.0));
    }
    svg
}

fn legend(ways: &[Column]) -> String {
    let mut svg = "<text x=\"34\" y=\"16\">Ratio to the direct way (line at 1),</text>\n\
                   <text x=\"34\" y=\"32\">by connections at a time</text>\n"
        .to_owned();
    for (number, column) in ways.iter().enumerate() {
        let y = 48.0 + 20.0 * number as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"34\" y=\"{y}\" width=\"14\" height=\"14\" fill=\"{}\"/><text x=\"54\" y=\"{}\">{}</text>",
            colour(column.way),
            y + 11.0,
            column.way.name(),
        );
    }
    svg
}
