//! Rules about the documents at the root of the repository.

use super::source::Source;

/// Documents with a limit of lines. Details belong into the book.
const LIMITS: [(&str, usize); 1] = [("README.md", 120)];

/// Documents that exceed their limit.
pub fn lengths(sources: &[Source]) -> Vec<String> {
    let limited =
        |source: &Source| LIMITS.iter().find(|(path, _)| *path == source.path).map(|(_, limit)| *limit);
    let too_long = sources.iter().filter_map(|source| {
        let (limit, lines) = (limited(source)?, source.text.lines().count());
        (lines > limit).then(|| format!("{}: {lines} lines, at most {limit}", source.path))
    });
    too_long.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readme_beyond_its_limit_is_found() {
        let source = |path: &str, lines: usize| Source { path: path.to_owned(), text: "a\n".repeat(lines) };
        let sources = [source("README.md", 121), source("CHANGELOG.md", 500)];
        assert_eq!(lengths(&sources), ["README.md: 121 lines, at most 120"]);
        assert_eq!(lengths(&[source("README.md", 120)]), Vec::<String>::new());
    }
}
