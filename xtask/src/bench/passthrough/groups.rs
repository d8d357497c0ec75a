//! The measures: rows of the table, in groups.

use clap::ValueEnum;

use super::load::hello::Hello;
use super::load::protocol::Load;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The kind of load.
    pub load: Load,
    /// At a time.
    pub connections: usize,
    /// How a connection begins.
    pub hello: Hello,
}

impl Load {
    /// Name on the load tool's command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl Hello {
    /// Name on the load tool's command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Measures of one sort: a part of the plot.
#[derive(Clone, Copy)]
pub struct Group {
    /// Heading.
    pub title: &'static str,
    /// For `--only`.
    pub id: &'static str,
    /// Of its figures.
    pub unit: &'static str,
    /// Divisor of a client's units.
    pub scale: f64,
    load: Load,
    hello: Hello,
    /// At a time.
    pub connections: [usize; 3],
    /// Least ratio of the kernel path to the direct one, and the fewest connections that it holds for.
    pub bar: (f64, usize),
}

/// All of them.
pub const GROUPS: [Group; 5] = [
    Group {
        title: "bulk down",
        id: "bulk-down",
        unit: "Gbit/s",
        scale: 1e9 / 8.0,
        load: Load::Down,
        hello: Hello::One,
        connections: [1, 4, 16],
        bar: (0.95, 1),
    },
    Group {
        title: "bulk up",
        id: "bulk-up",
        unit: "Gbit/s",
        scale: 1e9 / 8.0,
        load: Load::Up,
        hello: Hello::One,
        connections: [1, 4, 16],
        bar: (0.95, 1),
    },
    Group {
        title: "64-byte round trips",
        id: "round-trips",
        unit: "1,000/s",
        scale: 1e3,
        load: Load::Echo,
        hello: Hello::One,
        connections: [1, 16, 64],
        bar: (0.97, 1),
    },
    Group {
        title: "new connections",
        id: "new-connections",
        unit: "1,000/s",
        scale: 1e3,
        load: Load::Connect,
        hello: Hello::One,
        connections: [4, 16, 64],
        bar: (0.90, 16),
    },
    Group {
        title: "new connections, hello in two segments",
        id: "two-segments",
        unit: "1,000/s",
        scale: 1e3,
        load: Load::Connect,
        hello: Hello::Two,
        connections: [4, 16, 64],
        bar: (0.80, 16),
    },
];

impl Group {
    /// Its measures.
    pub fn measures(self) -> [Measure; 3] {
        self.connections.map(|connections| Measure { load: self.load, connections, hello: self.hello })
    }

    /// Whether its figures are of bulk data.
    pub fn is_bulk(&self) -> bool {
        matches!(self.load, Load::Down | Load::Up)
    }

    /// Least ratio of the kernel path to the direct one, where there is one.
    pub fn bar(self, measure: Measure) -> Option<f64> {
        (measure.connections >= self.bar.1).then_some(self.bar.0)
    }
}
