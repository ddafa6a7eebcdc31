//! Source files that the rules inspect.

use std::fs;

use anyhow::{Context, Result};

use crate::{paths, process};

/// A text file of the repository.
#[derive(Debug)]
pub(super) struct Source {
    /// Path relative to the root of the repository.
    pub path: String,
    pub text: String,
}

/// Returns every text file that is tracked or would be by the next commit.
pub(super) fn tracked() -> Result<Vec<Source>> {
    let root = paths::root();
    let mut git = std::process::Command::new("git");
    // As root in a clone of another user, git refuses unless the folder is configured as safe.
    git.arg("-c").arg(format!("safe.directory={}", root.display())).current_dir(&root);
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = process::output(&mut git).context("tidy needs git, and a clone")?;
    let mut sources = Vec::new();
    for path in list.split('\0').filter(|path| !path.is_empty()) {
        let file = root.join(path);
        if !file.is_file() {
            continue; // deleted, and not yet committed
        }
        let content = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        if let Ok(text) = String::from_utf8(content) {
            sources.push(Source { path: path.to_owned(), text });
        }
    }
    Ok(sources)
}

impl Source {
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Reports whether this is an integration test or a separate file of unit tests.
    pub(super) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    pub(super) fn is_below(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the lines with their numbers, without the test module at the end of a file and without comments.
    pub(super) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let tests = lines
            .windows(2)
            .position(|pair| {
                let is_module = pair[1].trim_start().starts_with("mod ") && pair[1].trim_end().ends_with('{');
                pair[0].trim() == "#[cfg(test)]" && is_module
            })
            .unwrap_or(lines.len());
        lines.into_iter().take(tests).map(without_comment).enumerate().map(|(n, line)| (n + 1, line))
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(n, line)| (n + 1, line))
    }

    pub(super) fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// Returns the line without its comment. Sufficient for these sources: `//` inside a string is a URL, followed by
/// nothing of interest.
fn without_comment(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// Reports whether `line` contains `word` as a whole word.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(is_name) && !line[at + word.len()..].starts_with(is_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_ends_where_the_test_module_begins() {
        let text = "fn a() {} // why\n#[cfg(test)]\nmod tests {\n    fs::read();\n}\n".to_owned();
        let source = Source { path: "a.rs".to_owned(), text };
        assert_eq!(source.code().collect::<Vec<_>>(), [(1, "fn a() {} ")]);
    }

    #[test]
    fn code_goes_on_behind_a_test_module_in_a_file_of_its_own() {
        let text = "#[cfg(test)]\nmod tests;\nfn a() {}\n".to_owned();
        let source = Source { path: "a.rs".to_owned(), text };
        assert_eq!(source.code().count(), 3);
    }

    #[test]
    fn a_word_is_not_a_part_of_another() {
        assert!(has_word("an unsafe { block", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe"));
    }

    #[test]
    fn a_folder_is_not_a_prefix_of_another() {
        let source = Source { path: "gateway-ctl/core/src/lib.rs".to_owned(), text: String::new() };
        assert!(source.is_below("gateway-ctl/core"));
        assert!(!source.is_below("gateway-ctl/co"));
    }
}
