//! Markdown subset of the checks: headings, links and fenced blocks.

use std::collections::{BTreeMap, BTreeSet};

/// Markdown file of the repository.
#[derive(Debug)]
pub(super) struct Document {
    /// Path relative to the root of the repository.
    pub path: String,
    pub text: String,
}

/// Inline link.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub line: usize,
    pub target: String,
}

/// Fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Line of the opening fence.
    pub line: usize,
    pub language: String,
    pub text: String,
}

const FENCE: &str = "```";

impl Document {
    pub(super) fn at(&self, line: usize, problem: &str) -> String {
        format!("{}:{line}: {problem}", self.path)
    }

    /// Returns the lines outside fenced blocks, with their numbers.
    fn prose(&self) -> Vec<(usize, &str)> {
        let mut fenced = false;
        let mut lines = Vec::new();
        for (index, line) in self.text.lines().enumerate() {
            if line.trim_start().starts_with(FENCE) {
                fenced = !fenced;
            } else if !fenced {
                lines.push((index + 1, line));
            }
        }
        lines
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (index, line) in self.text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix(FENCE);
            match (&mut open, fence) {
                (None, Some(language)) => {
                    let language = language.trim().to_owned();
                    open = Some(Block { line: index + 1, language, text: String::new() });
                }
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(block), None) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        blocks.extend(open);
        blocks
    }

    pub(super) fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (line, text) in self.prose() {
            let text = without_code(text);
            for (at, opening) in text.match_indices("](") {
                let rest = &text[at + opening.len()..];
                let target = rest.split([')', ' ']).next().unwrap_or(rest);
                links.push(Link { line, target: target.to_owned() });
            }
        }
        links
    }

    /// Returns the ids of the headings, as mdBook and the usual repository hosts form them.
    pub(super) fn anchors(&self) -> BTreeSet<String> {
        let mut counts = BTreeMap::new();
        let mut anchors = BTreeSet::new();
        for (_, line) in self.prose() {
            let text = line.trim_start_matches('#');
            if text.len() == line.len() || !text.starts_with(' ') {
                continue;
            }
            let slug = slug(text.trim());
            let count = counts.entry(slug.clone()).or_insert(0);
            anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
            *count += 1;
        }
        anchors
    }
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

/// Returns the line with spaces in place of inline code.
fn without_code(line: &str) -> String {
    let mut code = false;
    let blank = |c| {
        if c == '`' {
            code = !code;
            return ' ';
        }
        if code { ' ' } else { c }
    };
    line.chars().map(blank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document { path: "a.md".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn links_are_found_outside_of_code_only() {
        let text = "[a](b.md#c) and `[x](y)`\n```sh\n[no](no.md)\n```\n![i](i.png \"title\")\n";
        let link = |line, target: &str| Link { line, target: target.to_owned() };
        assert_eq!(document(text).links(), [link(1, "b.md#c"), link(5, "i.png")]);
    }

    #[test]
    fn anchors_follow_headings_and_count_repeated_ones() {
        let text = "# Apply, and `rollback`\n## Use\n## Use\n```sh\n# comment\n```\n#hashtag\n";
        let wanted = ["apply-and-rollback", "use", "use-1"].map(str::to_owned);
        assert_eq!(document(text).anchors(), BTreeSet::from(wanted));
    }

    #[test]
    fn blocks_have_language_and_line() {
        let blocks = document("a\n```sh\nls\n```\n```\nx\n```\n").blocks();
        let block = |line, language: &str, text: &str| Block {
            line,
            language: language.to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(blocks, [block(2, "sh", "ls\n"), block(5, "", "x\n")]);
    }
}
