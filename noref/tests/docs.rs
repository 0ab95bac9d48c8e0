//! The documents say what is true.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::differences::Differences;
use testkit::replay::Scratch;

fn read(file: &str) -> String {
    fs::read_to_string(testkit::root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

#[test]
fn the_replay_of_the_readme_prints_what_the_readme_shows() {
    let readme = read("README.md");
    let (_, block) = readme.split_once("```console\n$ cargo run --release -- replay ").expect("a console block with the replay");
    let (command, rest) = block.split_once('\n').expect("a line with the command");
    let (shown, _) = rest.split_once("```").expect("the end of the block");

    let out = Scratch::new();
    let mut arguments: Vec<String> = ["replay"].into_iter().chain(command.split_whitespace()).map(String::from).collect();
    let tx = arguments.iter().position(|argument| argument == "--tx").expect("--tx");
    arguments[tx + 1] = out.path().display().to_string();
    let ran = Command::new(env!("CARGO_BIN_EXE_noref")).args(arguments).current_dir(testkit::root()).output().expect("noref runs");

    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), shown, "paste the real output into README.md");
}

#[test]
fn questions_about_routes_have_the_answers_that_are_shown() {
    let document = read("docs/route-get.md");
    let mut blocks = document.split("```").skip(1).step_by(2);
    let scratch = Scratch::new();
    fs::write(scratch.path().join("network.ip"), blocks.next().expect("the network file").trim_start()).expect("a network file");
    let questions: Vec<_> = blocks.flat_map(|block| block.split("$ noref ").skip(1)).collect();
    assert!(questions.len() >= 10);
    for question in questions {
        let (line, answer) = question.split_once('\n').expect("an answer");
        let ran = Command::new(env!("CARGO_BIN_EXE_noref")).args(line.split(' ')).current_dir(scratch.path()).output().expect("noref runs");
        let told = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8(bytes).expect("text")).concat();
        // It is root who asks in the document.
        let told = told.replace(&format!(" uid {} ", nix::unistd::getuid()), " uid 0 ");
        assert_eq!(told, answer, "{line}");
        assert_eq!(ran.status.code(), Some(if answer.contains("RTNETLINK answers: ") { 2 } else { 0 }), "{line}");
    }
}

#[test]
fn every_listed_difference_is_explained() {
    let explained = read("docs/linux-differences.md");
    for row in Differences::read(&testkit::root().join("tests/differences.toml")).listed {
        assert!(explained.contains(&row.rfc), "docs/linux-differences.md does not mention {}", row.rfc);
        for (case, frames) in &row.frames {
            let numbers: Vec<_> = frames.iter().map(u64::to_string).collect();
            let line = format!("- `{case}`: {}\n", numbers.join(", "));
            assert!(explained.contains(&line), "docs/linux-differences.md does not say: {line}");
        }
    }
}

#[test]
fn the_list_of_drop_reasons_is_current() {
    let mut list = "# Drop reasons\n\nNo packet disappears without one of these names. They are stable: they name counters in the text and the JSON of a result.\n\n\
                    | reason | meaning |\n|---|---|\n"
        .to_owned();
    for reason in route::DropReason::ALL {
        let _ = writeln!(list, "| `{}` | {} |", reason.word(), reason.meaning());
    }
    let _ = writeln!(list, "\nWritten by `UPDATE_DOCS=1 cargo test -p noref --test docs`.");
    let file = testkit::root().join("docs/drop-reasons.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &list).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    }
    assert_eq!(read("docs/drop-reasons.md"), list, "run UPDATE_DOCS=1 cargo test -p noref --test docs");
}

#[test]
fn every_dependency_has_its_reason() {
    let reasons = read("docs/dependencies.md");
    let (_, declared) =
        read("Cargo.toml").split_once("[workspace.dependencies]").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("the table");
    let declared: String = declared.lines().take_while(|line| !line.starts_with('[')).map(|line| format!("{line}\n")).collect();
    let names: Vec<_> =
        declared.lines().filter(|line| !line.contains("path =")).filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    assert!(!names.is_empty());
    for name in &names {
        assert!(reasons.contains(&format!("`{name}`")), "docs/dependencies.md does not say why {name} is there");
    }
    for row in reasons.lines().filter(|line| line.starts_with("| `")) {
        let cell = row.split('|').nth(1).unwrap_or_default();
        for name in cell.split(',').map(|name| name.trim().trim_matches('`')) {
            assert!(names.contains(&name), "docs/dependencies.md names {name}, which is no dependency");
        }
    }
}

/// The names of all tests below a directory.
fn tests_below(dir: &Path, found: &mut HashSet<String>) {
    for entry in fs::read_dir(dir).expect("a directory").filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let tests = text.split("#[test]").skip(1).filter_map(|behind| behind.split_once("fn ")?.1.split_once('('));
            found.extend(tests.map(|(name, _)| name.to_owned()));
        }
    }
}

#[test]
fn every_known_fault_names_tests_that_exist_or_says_why_it_cannot_occur() {
    let mut tests = HashSet::new();
    ["crates", "noref"].iter().for_each(|top| tests_below(&testkit::root().join(top), &mut tests));
    let text = read("docs/known-faults.md");
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| fault")).collect();
    assert!(rows.len() > 30, "{}", rows.len());
    for row in rows {
        let answer = row.trim_end_matches(" |").rsplit_once(" | ").expect("two cells").1;
        let named: Vec<_> = answer.split('`').skip(1).step_by(2).filter(|word| word.contains('_') && *word != "known_faults").collect();
        for name in &named {
            let there = tests.contains(*name) || (name.contains('/') && testkit::root().join("tests/golden").join(name).is_dir());
            assert!(there, "docs/known-faults.md names {name}, which is not there");
        }
        assert!(answer.starts_with("Cannot ") || named.iter().any(|name| tests.contains(*name)), "no test and no reason: {row}");
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut documents =
        vec![PathBuf::from("README.md"), "ARCHITECTURE.md".into(), "examples/l3vpn/README.md".into(), "tests/golden/README.md".into()];
    for dir in ["docs", "docs/decisions"] {
        let entries = fs::read_dir(testkit::root().join(dir)).expect("a directory").filter_map(|entry| entry.ok());
        documents.extend(
            entries.map(|entry| Path::new(dir).join(entry.file_name())).filter(|path| path.extension().is_some_and(|end| end == "md")),
        );
    }
    for document in documents {
        let text = read(&document.display().to_string());
        let dir = testkit::root().join(document.parent().unwrap_or(Path::new("")));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            let outside = target.is_empty() || target.contains("://");
            assert!(outside || dir.join(target).exists(), "{}: {link} leads nowhere", document.display());
        }
    }
}

#[test]
fn files_that_the_architecture_names_exist() {
    let text = read("ARCHITECTURE.md");
    let paths = text.split('`').skip(1).step_by(2).filter(|word| !word.contains(' ') && word.contains('/'));
    for path in paths.filter(|path| ["crates/", "noref/", "tests/", "docs/"].iter().any(|top| path.starts_with(top))) {
        assert!(testkit::root().join(path).exists(), "ARCHITECTURE.md names {path}, which is not there");
    }
}
