//! `noref ip`: iproute2's language against a running router.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::api::Client;
use crate::api::protocol::{Body, Lines, Outcome, Request};
use crate::failure::Failure;
use crate::stderr::say;
use crate::stdout::Stdout;

/// Bytes of lines that one request carries: with every character escaped it is shorter than a request may be.
const PART: usize = 8 * 1024;

/// Ask a running router, or change it, in the words of iproute2's `ip`
///
/// What `ip` shows is shown in the same form; what changes something is in effect when this ends. A router that follows the kernel
/// is changed with `ip` itself.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct IpArgs {
    /// The router's control socket
    #[arg(long, value_name = "PATH", default_value = crate::run::DEFAULT_SOCKET)]
    pub socket: PathBuf,

    /// What follows `ip`: [-force] -batch FILE, or a command
    #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub words: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  noref ip route add 10.9.0.0/16 via 10.0.0.2
  noref ip -6 route show table all
  noref ip -s -6 route show fc00:1::e
  noref ip route get 10.9.0.1 from 10.0.0.2 iif e0
  noref ip -batch changes.ip            every line or none
  noref ip -force -batch -              each line by itself, from standard input

Exit status:
  0  done
  1  the lines cannot be read, or the output not be written
  2  the router does not take them, or route get finds no way
  3  no router runs at the socket, or it may not be used";

/// Does what `args` say.
///
/// # Errors
/// When no router runs there, or it does not take the lines; nothing of them was done then, but for `-force`.
pub fn run(args: &IpArgs) -> Result<(), Failure> {
    let asked = Asked::parse(&args.words).map_err(Failure::incomplete)?;
    let (lines, name, force) = match &asked {
        Asked::Line(line) => (line.clone(), "ip".to_owned(), false),
        Asked::Batch { file, force } => (read(file)?, file.display().to_string(), *force),
    };
    tell(&args.socket, &lines, &name, force)
}

/// Gives lines to the router at a socket, and prints what it says. `name` stands for them in errors, and each is by itself with `force`.
///
/// # Errors
/// As [`run`].
pub fn tell(socket: &Path, lines: &str, name: &str, force: bool) -> Result<(), Failure> {
    let mut client = Client::connect(socket)?;
    send(&mut client, lines, name, force)?;
    let mut stdout = Stdout::new();
    loop {
        let (_, reply) = client.next()?;
        let Body::Ip(Outcome { text, warnings, errors, refused, no_answer }) = reply.body else { continue };
        stdout.print(|output| output.write_all(text.as_bytes()))?;
        warnings.iter().for_each(|warning| say(format_args!("warning: {warning}")));
        if !errors.is_empty() {
            stdout.flush()?;
            return Err(match (no_answer, refused) {
                (true, _) => Failure::no_answer(errors),
                (false, true) => Failure::unusable(errors),
                (false, false) => Failure::incomplete(errors),
            });
        }
        if !reply.more || stdout.is_closed() {
            return stdout.flush();
        }
    }
}

/// Sends the lines, in as many requests as it takes.
fn send(client: &mut Client, lines: &str, name: &str, force: bool) -> Result<(), Failure> {
    let mut rest = lines;
    loop {
        let mut end = rest.len().min(PART);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (part, others) = rest.split_at(end);
        let more = !others.is_empty();
        client.ask(&Request::Ip(Lines { lines: part.to_owned(), name: name.to_owned(), force, more }))?;
        if !more {
            return Ok(());
        }
        rest = others;
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = match file.as_os_str() == "-" {
        true => io::stdin().lock().read_to_end(&mut bytes).map(|_| ()),
        false => fs::read(file).map(|read| bytes = read),
    };
    read.map_err(|error| Failure::incomplete(format!("{}: {error}", file.display())))?;
    crate::network::text(bytes, &file.display().to_string()).map_err(Failure::incomplete)
}

/// What the words ask for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// One line.
    Line(String),
    /// The lines of a file, or of standard input (`-`).
    Batch { file: PathBuf, force: bool },
}

impl Asked {
    fn parse(words: &[String]) -> Result<Asked, String> {
        let (mut force, mut batch, mut at) = (false, None, 0);
        // As iproute2 takes them: `-f` is `-family`, `-b` is `-batch`, `-br` is neither.
        while let Some(word) = words.get(at).map(String::as_str) {
            match word.strip_prefix("--").map_or(word, |_| &word[1..]) {
                option if option.len() > 2 && "-force".starts_with(option) && option != "-f" => force = true,
                option if option.len() > 1 && "-batch".starts_with(option) => {
                    at += 1;
                    batch = Some(words.get(at).ok_or("-batch needs a file, or - for standard input")?);
                }
                _ => break,
            }
            at += 1;
        }
        let rest = words.get(at..).unwrap_or_default();
        match batch {
            Some(_) if !rest.is_empty() => {
                Err(format!("\"{}\" is too much here: with -batch, options and commands stand in the lines of the file", rest.join(" ")))
            }
            Some(file) => Ok(Asked::Batch { file: file.into(), force }),
            None => rest.iter().map(|word| quoted(word)).collect::<Result<Vec<_>, _>>().map(|words| Asked::Line(words.join(" "))),
        }
    }
}

/// A word as it stands in a line.
///
/// # Errors
/// One that a line cannot say.
pub fn quoted(word: &str) -> Result<String, String> {
    let plain = !word.is_empty() && !word.contains([' ', '\t', '\r', '\n', '#', '\'', '"', '\\']);
    match word {
        _ if plain => Ok(word.to_owned()),
        _ if word.contains('\n') => Err("a word goes over the end of its line".to_owned()),
        _ if !word.contains('\'') => Ok(format!("'{word}'")),
        _ if !word.contains('"') => Ok(format!("\"{word}\"")),
        _ => Err(format!("the word {word} has both kinds of quotes, which a line cannot say")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Result<Asked, String> {
        Asked::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    fn line(words: &[&str]) -> String {
        match asked(words) {
            Ok(Asked::Line(line)) => line,
            other => panic!("{words:?}: {other:?}"),
        }
    }

    #[test]
    fn words_become_a_line_that_says_the_same() {
        assert_eq!(line(&["-6", "route", "show"]), "-6 route show");
        assert_eq!(line(&["-f", "inet6", "route"]), "-f inet6 route");
        assert_eq!(line(&["-br", "link"]), "-br link");
        assert_eq!(line(&["sr", "hmac", "set", "1", "sha1", "two words"]), "sr hmac set 1 sha1 'two words'");
        assert_eq!(line(&["sr", "hmac", "set", "1", "sha1", ""]), "sr hmac set 1 sha1 ''");
        assert_eq!(line(&["a#b", "it's"]), "'a#b' \"it's\"");
        assert!(asked(&["'\""]).unwrap_err().contains("both kinds of quotes"));
        assert!(asked(&["a\nb"]).unwrap_err().contains("over the end of its line"));
    }

    #[test]
    fn batches_come_from_a_file_or_standard_input() {
        let batch = |file: &str, force| Ok(Asked::Batch { file: file.into(), force });
        assert_eq!(asked(&["-batch", "a.ip"]), batch("a.ip", false));
        assert_eq!(asked(&["-force", "-b", "-"]), batch("-", true));
        assert_eq!(asked(&["--batch", "-", "-fo"]), batch("-", true));
        assert!(asked(&["-batch"]).unwrap_err().contains("needs a file"));
        assert!(asked(&["-batch", "a.ip", "-6"]).unwrap_err().contains("\"-6\" is too much here"));
    }
}
