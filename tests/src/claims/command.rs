//! The lines of a `requests` section.
//!
//! | line | what it does |
//! |---|---|
//! | `$ curl ARGUMENTS URL` | asks the router with curl, and `sluice explain` for the same request |
//! | `$ x20 curl …` | as often, and tells how often who answered |
//! | `$ ~x20 curl …` | as often, and tells who answered |
//! | `$ curl … &`, `$ wait` | asks, goes on when a backend has the request; `wait` tells what came of all of them |
//! | `$ release` | lets backends answer that `hold` |
//! | `$ await BACKEND` | waits for the backend's next request (of a mirror), and tells what it saw |
//! | `$ openssl s_client ARGUMENTS` | a TLS handshake with the router, and `sluice explain` for the server name |
//! | `$ send PORT`, `$ send PORT tls NAME` | sends the lines behind `> ` as they are, each with CR LF; `end` behind it ends the client's side then |
//! | `$ open LINE PORT`, `$ write LINE` | the same on a connection that stays open between commands |
//! | `$ taken LINE 0 700` | writes until the router takes nothing any more, after so many milliseconds |
//! | `$ crowd PORT 2000`, `$ leave` | connections that say nothing, until they leave |
//! | `$ checks BACKEND 5` | waits for as many connections to a backend, 3 s at most |
//! | `$ log 1` | waits for as many lines of the access log, and tells all that were not told |
//! | `$ terminate` | sends the router SIGTERM, and waits until it drains |
//! | `$ sluice get …` | what `sluice` prints about the running router |
//! | `$ apply NAME` | puts the section `== manifests later NAME` into the folder, waits until it is served |
//! | `! reason` | why `explain` cannot know what the request above met; only where it does not |

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::story::Section;

/// A command of a story.
#[derive(Clone, Debug)]
pub struct Command {
    /// The last of its lines in the section; its output follows.
    pub last: usize,
    /// How often it is given.
    pub times: usize,
    /// True if only the set of responding backends is reported.
    pub is_vague: bool,
    /// Whether the next command begins while it is under way.
    pub in_background: bool,
    /// Program and arguments, or a verb of the stage.
    pub words: Vec<String>,
    /// The lines behind `> `.
    pub sent: Vec<String>,
    /// What stands behind `! `.
    pub excuse: Option<String>,
}

/// How long anything in a story may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Reads the commands of a section.
///
/// # Errors
/// A line is invalid.
pub fn commands(section: &Section) -> Result<Vec<Command>> {
    let mut commands: Vec<Command> = Vec::new();
    for (at, line) in section.lines.iter().enumerate() {
        let line = line.trim_end();
        if let Some(text) = line.strip_prefix("$ ") {
            commands.push(command(at, text).with_context(|| format!("command {text:?}"))?);
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let last = commands.last_mut().filter(|last| last.last + 1 == at);
        let last = last.with_context(|| format!("{line:?} is no command, and follows none"))?;
        last.last = at;
        match line.split_at_checked(2) {
            Some(("> ", sent)) => last.sent.push(sent.to_owned()),
            Some(("! ", excuse)) => last.excuse = Some(excuse.to_owned()),
            _ if line == ">" => last.sent.push(String::new()),
            _ => bail!("{line:?} is no line of a story; write `$ `, `> `, `! ` or `#` before it"),
        }
    }
    Ok(commands)
}

fn command(at: usize, text: &str) -> Result<Command> {
    let mut words = words(text)?;
    let in_background = words.last().is_some_and(|word| word == "&");
    if in_background {
        words.pop();
    }
    let (mut times, mut is_vague) = (1, false);
    let first = words.first().context("a command has a program")?;
    if let Some((before, count)) = first.split_once('x').filter(|(before, _)| ["", "~"].contains(before))
        && let Ok(count) = count.parse()
    {
        (times, is_vague) = (count, !before.is_empty());
        words.remove(0);
    }
    ensure!(!words.is_empty() && (1..=500).contains(&times), "what is to be done, and how often?");
    Ok(Command { last: at, times, is_vague, in_background, words, sent: Vec::new(), excuse: None })
}

/// The words of a command, as a shell cuts them; placeholders are whole.
fn words(text: &str) -> Result<Vec<String>> {
    // Stands for a blank within a placeholder.
    const BLANK: char = '\u{1}';
    let mut guarded = String::new();
    let mut rest = text;
    while let Some((before, (inside, after))) =
        rest.split_once("{{").and_then(|(before, rest)| Some((before, rest.split_once("}}")?)))
    {
        guarded += &format!("{before}{{{{{}}}}}", inside.replace(' ', &BLANK.to_string()));
        rest = after;
    }
    let words = shlex::split(&(guarded + rest)).context("a quote is not closed")?;
    Ok(words.into_iter().map(|word| word.replace(BLANK, " ")).collect())
}
