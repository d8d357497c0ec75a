//! The lines of a `requests` section.
//!
//! | line | what it does |
//! |---|---|
//! | `$ curl ARGUMENTS URL` | sends a request to the router with curl, and queries `sluice explain` for it |
//! | `$ x20 curl …` | repeats it, and counts the responses by backend |
//! | `$ ~x20 curl …` | repeats it, and names the backends that responded |
//! | `$ curl … &`, `$ wait` | continues when a backend has received the request; `wait` reports all outcomes |
//! | `$ release` | releases the responses of backends with `hold` |
//! | `$ await BACKEND` | waits for the backend's next request (of a mirror), and reports it |
//! | `$ openssl s_client ARGUMENTS` | performs a TLS handshake, and queries `sluice explain` for the server name |
//! | `$ send PORT`, `$ send PORT tls NAME` | sends the lines after `> ` verbatim, each with CR LF |
//! | `$ send PORT … end` | the same, and then half-closes the connection |
//! | `$ open LINE PORT`, `$ write LINE` | the same on a connection that stays open between commands |
//! | `$ taken LINE 0 700` | writes until the router reads no more, after this range of milliseconds |
//! | `$ crowd PORT 2000`, `$ leave` | opens silent connections; `leave` closes them |
//! | `$ checks BACKEND 5` | waits for this number of connections to a backend, 3 s at most |
//! | `$ log 1` | waits for this number of lines of the access log, and prints all new ones |
//! | `$ terminate` | sends SIGTERM to the router, and waits until it drains |
//! | `$ sluice get …` | prints the output of `sluice` for the running router |
//! | `$ apply NAME` | adds the section `== manifests later NAME` to the folder, and waits until it is served |
//! | `! reason` | why `explain` cannot predict the outcome of the request above; only if it does not |

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::story::Section;

/// A command of a story.
#[derive(Clone, Debug)]
pub struct Command {
    /// The last of its lines in the section; its output comes after it.
    pub last: usize,
    /// Repeat count.
    pub times: usize,
    /// True if only the set of responding backends is reported.
    pub is_vague: bool,
    /// True if the next command starts while this one runs.
    pub in_background: bool,
    /// Program and arguments, or a verb of the stage.
    pub words: Vec<String>,
    /// The lines after `> `.
    pub sent: Vec<String>,
    /// The text after `! `.
    pub excuse: Option<String>,
}

/// Time-out of every step of a story.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Parses the commands of a section.
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

/// Splits a command into words as a shell does; a placeholder is one word.
fn words(text: &str) -> Result<Vec<String>> {
    // Stands for a blank inside a placeholder.
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
