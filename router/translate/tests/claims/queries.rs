//! The requests of a story as queries for `explain`.

use router_translate::explain::query::Query;

use crate::story::Story;

/// A step of a story that matters here.
pub enum Step {
    /// A query.
    Ask(Query),
    /// `$ apply NAME`.
    Apply(String),
}

/// The commands of a story's `requests` in order.
pub fn steps(story: &Story) -> Vec<Step> {
    let mut steps = Vec::new();
    for (_, lines) in story.of_kind("requests") {
        for (at, line) in lines.iter().enumerate() {
            let Some(words) = line.strip_prefix("$ ").map(words) else { continue };
            let sent = lines[at + 1..].iter().map_while(|line| line.strip_prefix('>')).map(|line| line.trim_start());
            match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["apply", name] => steps.push(Step::Apply((*name).to_owned())),
                ["curl", arguments @ ..] => steps.extend(curl(arguments).map(Step::Ask)),
                ["openssl", arguments @ ..] => steps.extend(handshake(arguments).map(Step::Ask)),
                ["send", port, how @ ..] => {
                    let scheme = if how.contains(&"tls") { "https" } else { "http" };
                    steps.extend(request(scheme, port, &sent.collect::<Vec<_>>()).map(Step::Ask));
                }
                _ => {}
            }
        }
    }
    steps
}

/// The words of a command without its repeat count; a placeholder is one word.
fn words(line: &str) -> Vec<String> {
    const BLANK: char = '\u{1}';
    let (mut guarded, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, after) = after.split_once("}}").unwrap();
        guarded += &format!("{before}{{{{{}}}}}", inside.replace(' ', &BLANK.to_string()));
        rest = after;
    }
    let mut words = shlex::split(&(guarded + rest)).unwrap();
    let times = words[0].trim_start_matches('~').strip_prefix('x');
    if times.is_some_and(|times| times.parse::<u32>().is_ok()) {
        words.remove(0);
    }
    words.into_iter().map(|word| word.replace(BLANK, " ")).collect()
}

/// The request of a curl command; `None` if it cannot be explained.
fn curl(arguments: &[&str]) -> Option<Query> {
    let (mut url, mut method, mut fields, mut from) = ("", None, Vec::new(), None);
    let (mut has_data, mut is_get) = (false, false);
    let mut rest = arguments.iter().copied();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().unwrap_or_default();
        match argument {
            "-X" | "--request" => method = Some(value()),
            "-I" | "--head" => method = Some("HEAD"),
            "-G" | "--get" => is_get = true,
            "-H" | "--header" => fields.push(value().to_owned()),
            "-A" | "--user-agent" => fields.push(format!("User-Agent: {}", value())),
            "-b" | "--cookie" => {
                fields.extend(Some(value()).filter(|it| it.contains('=')).map(|it| format!("Cookie: {it}")))
            }
            "-d" | "--data" | "--data-binary" | "--data-raw" | "--json" => {
                value();
                has_data = true;
            }
            "--interface" => from = Some(value()),
            "-c" | "--cookie-jar" | "--cert" | "--key" | "--tls-max" | "--ciphers" | "--cacert" | "--curves"
            | "--tls13-ciphers" | "--max-time" | "-T" | "--upload-file" => drop(value()),
            it if it.starts_with("http://") || it.starts_with("https://") => url = it,
            _ => {}
        }
    }
    if has_data && !is_get && method.is_none() {
        method = Some("POST");
    }
    query(url, method, &fields, from)
}

fn query(url: &str, method: Option<&str>, fields: &[String], from: Option<&str>) -> Option<Query> {
    let mut query = Query::parse(url).ok()?;
    if let Some(method) = method {
        query = query.with_method(method).ok()?;
    }
    for field in fields {
        query = query.with_header(field).ok()?;
    }
    Some(match from {
        Some(from) => query.from_client(from.parse().unwrap()),
        None => query,
    })
}

fn handshake(arguments: &[&str]) -> Option<Query> {
    let value = |of: &str| arguments.iter().position(|it| *it == of).and_then(|at| arguments.get(at + 1));
    let port = value("-connect").and_then(|place| place.rsplit_once(':')).map_or("443", |(_, port)| port);
    Query::parse(&format!("{}:{port}", value("-servername")?)).ok()
}

/// The request in lines that are sent verbatim.
fn request(scheme: &str, port: &str, lines: &[&str]) -> Option<Query> {
    let lines = if lines.first()?.starts_with("PROXY ") { &lines[1..] } else { lines };
    let mut words = lines.first()?.split(' ');
    let (method, target) = (words.next()?, words.next().filter(|target| target.starts_with('/'))?);
    let host = lines.iter().find_map(|line| line.strip_prefix("Host: "))?;
    let port = if host.contains(':') { String::new() } else { format!(":{port}") };
    let fields = lines.iter().skip(1).take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("Host: "));
    let fields: Vec<String> = fields.map(|line| (*line).to_owned()).collect();
    query(&format!("{scheme}://{host}{port}{target}"), Some(method), &fields, None)
}
