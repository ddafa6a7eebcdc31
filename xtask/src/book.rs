//! Checks of the documentation: the pages of the book, links and anchors, and the commands of examples.

mod document;
mod examples;
mod links;
mod openapi;
mod schema;
mod shell;
mod summary;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};

use crate::{paths, process, setup};
use document::Document;
use examples::Reference;

/// Builds the book, and returns the problems of the documentation as `path:line: what`.
fn check() -> Result<Vec<String>> {
    let files = tracked()?;
    let documents = documents(&files)?;
    let mut problems = links::check(&documents, &files);
    problems.extend(summary::check(&documents));
    let reference = Reference { openapi: openapi::load()?, client: client_commands(&files)?, xtask };
    for document in documents.iter().filter(|document| has_examples(document)) {
        problems.extend(examples::check(document, &reference)?);
    }
    if problems.is_empty() {
        build()?;
    }
    Ok(problems)
}

#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Renew the part of the table of contents that lists known limits and decisions
    #[arg(long)]
    update: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if options.update {
        update()?;
    }
    let problems = check()?;
    for problem in &problems {
        eprintln!("{problem}");
    }
    if !problems.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    println!("book: {}", paths::book().join("index.html").display());
    Ok(ExitCode::SUCCESS)
}

fn update() -> Result<()> {
    let renewed = summary::renewed(&read(summary::SUMMARY)?, &documents(&tracked()?)?);
    let file = paths::root().join(summary::SUMMARY);
    fs::write(&file, renewed).with_context(|| format!("cannot write {}", file.display()))
}

fn build() -> Result<()> {
    let program = setup::mdbook()?;
    let mut command = Command::new(program);
    command.arg("build").arg(paths::root().join("docs")).arg("--dest-dir").arg(paths::book());
    process::output(&mut command).context("the book cannot be built").map(drop)
}

fn has_examples(document: &Document) -> bool {
    document.path.starts_with("docs/src/")
        || matches!(document.path.as_str(), "README.md" | "CONTRIBUTING.md")
}

/// Returns the paths of the files that are tracked or would be by the next commit.
fn tracked() -> Result<BTreeSet<String>> {
    let root = paths::root();
    let mut git = Command::new("git");
    git.arg("-c").arg(format!("safe.directory={}", root.display())).current_dir(&root);
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = process::output(&mut git).context("the check of the documentation needs git, and a clone")?;
    let existing = list.split('\0').filter(|path| !path.is_empty() && root.join(path).is_file());
    Ok(existing.map(str::to_owned).collect())
}

fn documents(files: &BTreeSet<String>) -> Result<Vec<Document>> {
    let pages = files.iter().filter(|path| path.ends_with(".md"));
    pages.map(|path| Ok(Document { path: path.clone(), text: read(path)? })).collect()
}

fn read(path: &str) -> Result<String> {
    let file = paths::root().join(path);
    fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// Returns the command lines of the client in the golden files of its tests, without the name of the program.
fn client_commands(files: &BTreeSet<String>) -> Result<Vec<Vec<String>>> {
    let golden = files.iter().filter(|path| {
        let parent = Path::new(path).parent().and_then(Path::to_str);
        parent == Some("tests/tests/cli/golden") && path.ends_with(".txt")
    });
    let mut commands = Vec::new();
    for path in golden {
        if let Some(line) = read(path)?.lines().next().and_then(|line| line.strip_prefix("$ gateway-ctl ")) {
            commands.push(line.split(' ').map(str::to_owned).collect());
        }
    }
    Ok(commands)
}

/// Returns true if this program accepts the arguments. It only prints its help.
fn xtask(arguments: &[String]) -> bool {
    let Ok(program) = std::env::current_exe() else { return false };
    let output = Command::new(program).args(arguments).arg("--help").output();
    output.is_ok_and(|output| ExitStatus::success(&output.status))
}
