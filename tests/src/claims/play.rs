//! Plays a story: its sections in order, on a stage of its own.

use anyhow::{Result, ensure};

use super::stage::Stage;
use super::story::{Outputs, Story};

/// Plays a story. Returns its output, and the requests for which `explain` differs from the wire.
///
/// # Errors
/// The story cannot be played.
pub fn play(story: &Story) -> Result<(String, Vec<String>)> {
    let mut stage = Stage::new(story)?;
    let (mut outputs, mut faults) = (Outputs::new(), Vec::new());
    for (index, section) in story.sections.iter().enumerate() {
        match section.kind.as_str() {
            "requests" => stage.requests(index, section, &mut outputs, &mut faults)?,
            "status" => {
                for (at, object) in section.lines.iter().enumerate().filter(|(_, line)| is_input(line)) {
                    drop(outputs.insert((index, Some(at)), stage.status(object)));
                }
            }
            "validate" => drop(outputs.insert((index, None), stage.validate()?)),
            "bpf" => drop(outputs.insert((index, None), stage.dump(&section.argument)?)),
            _ => {}
        }
    }
    ensure!(stage.under_way.is_empty(), "requests are under way at the end; write `$ wait`");
    for lines in outputs.values_mut() {
        for line in lines {
            *line = stage.masked(line);
        }
    }
    Ok((story.render(&outputs), faults))
}

fn is_input(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}
