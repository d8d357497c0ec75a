//! Ratios by round, and their targets.

use std::fmt::Write as _;

use anyhow::Result;

/// Of one measure, by round.
pub struct Ratios(pub Vec<f64>);

impl Ratios {
    /// The middle one.
    pub fn median(&self) -> Option<f64> {
        median(self.0.clone())
    }

    /// From the least to the greatest.
    pub fn range(&self) -> (f64, f64) {
        let least = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        (least, self.0.iter().copied().fold(0.0, f64::max))
    }

    /// The median with its range, and whether it is enough.
    pub fn judged(&self, enough: impl Fn(f64) -> bool) -> Option<(String, bool)> {
        let median = self.median()?;
        let (from, to) = self.range();
        Some((format!("{median:.3} ({from:.2} – {to:.2})"), enough(median)))
    }
}

/// The middle value, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get(values.len().checked_sub(1)? / 2)?;
    Some((lower + upper) / 2.0)
}

/// One thing that was promised.
pub struct Bar {
    /// Of what.
    pub what: String,
    /// The least or most that will do.
    pub promised: String,
    /// The measured value; `None` if it was not measured.
    pub figure: Option<(String, bool)>,
}

/// Writes the table of bars.
pub fn write(text: &mut String, bars: &[Bar]) -> Result<()> {
    writeln!(
        text,
        "\nRatios below are medians of the rounds, with the least and the greatest.\n\n| bar | | measured | |\n|---|---|---|---|"
    )?;
    for bar in bars {
        let (figure, met) = match &bar.figure {
            Some((figure, true)) => (figure.as_str(), "met"),
            Some((figure, false)) => (figure.as_str(), "**missed**"),
            None => ("–", "not measured"),
        };
        writeln!(text, "| {} | {} | {figure} | {met} |", bar.what, bar.promised)?;
    }
    Ok(())
}
