//! Rules about the documents at the root of the repository and about the records of decisions.

use std::collections::BTreeSet;

use super::source::Source;

/// Documents with a limit of lines. Details belong in the book.
const LIMITS: [(&str, usize); 2] = [("README.md", 120), ("ARCHITECTURE.md", 200)];

/// Folder of the decisions, one file each, with an index.
const DECISIONS: &str = "docs/src/decisions";
const INDEX: &str = "docs/src/decisions/README.md";

/// Headings of a decision in their order.
const HEADINGS: [&str; 3] = ["## Context", "## Decision", "## Consequences"];
const MAX_DECISION_LINES: usize = 50;

/// Areas of the decisions. Each is a heading of the index.
const AREAS: [&str; 9] =
    ["Dataplane", "Fast path", "Routing", "Tunnels", "DNS", "LAN", "Store", "API", "Build"];

/// Returns the documents that exceed their limit.
pub(super) fn lengths(sources: &[Source]) -> Vec<String> {
    let limited =
        |source: &Source| LIMITS.iter().find(|(path, _)| *path == source.path).map(|(_, limit)| *limit);
    let too_long = sources.iter().filter_map(|source| {
        let (limit, lines) = (limited(source)?, source.text.lines().count());
        (lines > limit).then(|| format!("{}: {lines} lines, at most {limit}", source.path))
    });
    too_long.collect()
}

/// Returns the decisions with an invalid number, status, date, area, heading, length or index entry, those that no code
/// cites, and the citations of others.
pub(super) fn decisions(sources: &[Source]) -> Vec<String> {
    let index = sources.iter().find(|source| source.path == INDEX).map_or("", |source| &source.text);
    let records = sources.iter().filter(|source| source.is_below(DECISIONS) && source.path != INDEX);
    let mut numbers = BTreeSet::new();
    let citations: Vec<Citation<'_>> = sources.iter().flat_map(citations).collect();
    let mut problems = Vec::new();
    for source in records.clone() {
        let name = file_name(source);
        let mut problem = |what: &str| problems.push(format!("{}: {what}", source.path));
        match number(name) {
            Some(number) if !source.text.starts_with(&format!("# {number} ")) => {
                problem("the title does not begin with the number of the file");
            }
            Some(number) if !numbers.insert(number) => problem("another decision has this number"),
            Some(_) => {}
            None => problem("the name is not NNNN-title.md"),
        }
        let is_status = |line: &str| line.starts_with("Status: ") && line.contains(" Date: 20");
        if !source.text.lines().any(is_status) {
            problem("no line `Status: … Date: …`");
        }
        let headings: Vec<&str> = source.text.lines().filter(|line| line.starts_with("##")).collect();
        if headings != HEADINGS {
            problem("the headings are not Context, Decision and Consequences");
        }
        let lines = source.text.lines().count();
        if lines > MAX_DECISION_LINES {
            problem(&format!("{lines} lines, at most {MAX_DECISION_LINES}"));
        }
        match area(&source.text) {
            Some(area) if !AREAS.contains(&area) => {
                problem(&format!("the area `{area}` is none of {}", AREAS.join(", ")));
            }
            Some(area) if !section(index, area).contains(&format!("({name})")) => {
                problem(&format!("not in {INDEX} below `## {area}`"));
            }
            Some(_) => {}
            None => problem("the line `Status: …` does not end with `Area: ….`"),
        }
        let is_cited = |number: &str| citations.iter().any(|citation| citation.number == number);
        if number(name).is_some_and(|number| !is_cited(number)) {
            problem("no code cites it, as in `Decision NNNN says why.`");
        }
    }
    let existing: BTreeSet<&str> = records.filter_map(|source| number(file_name(source))).collect();
    let unknown = citations.iter().filter(|citation| !existing.contains(citation.number));
    for Citation { source, line, number } in unknown {
        problems.push(source.at(*line, &format!("there is no decision {number}")));
    }
    problems
}

/// Citation of a decision in the code.
struct Citation<'a> {
    source: &'a Source,
    line: usize,
    number: &'a str,
}

/// Returns the decisions that a file cites, as in `Decision NNNN says why.` A document has links in place of citations.
fn citations(source: &Source) -> Vec<Citation<'_>> {
    let lines = source.lines().filter(|_| !source.path.ends_with(".md"));
    let after = lines.flat_map(|(line, text)| text.split("ecision ").skip(1).map(move |rest| (line, rest)));
    let numbers = after.filter_map(|(line, rest)| Some((line, rest.get(..4)?)));
    let numbers = numbers.filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
    numbers.map(|(line, number)| Citation { source, line, number }).collect()
}

/// Returns the name of a decision's file.
fn file_name(source: &Source) -> &str {
    &source.path[DECISIONS.len() + 1..]
}

/// Returns the area at the end of the line with the status.
fn area(text: &str) -> Option<&str> {
    let status = text.lines().find(|line| line.starts_with("Status: "))?;
    status.split_once(" Area: ")?.1.strip_suffix('.')
}

/// Returns the part of the index below the heading of an area.
fn section<'a>(index: &'a str, area: &str) -> &'a str {
    let below = index.split_once(&format!("\n## {area}\n")).map_or("", |(_, below)| below);
    below.split("\n## ").next().unwrap_or_default()
}

/// Returns the number at the start of the name of a decision's file.
fn number(name: &str) -> Option<&str> {
    let (number, title) = name.strip_suffix(".md")?.split_once('-')?;
    let is_number = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !title.is_empty()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECISION: &str = "# 0001 Title\n\nStatus: accepted. Date: 2026-11-20. Area: DNS.\n\n\
                            ## Context\n\nA.\n\n## Decision\n\nB.\n\n## Consequences\n\nC.\n";

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn citing(number: &str) -> Source {
        source("a/src/lib.rs", &format!("//! A.\n//! Decision {number} says why.\n"))
    }

    /// Returns the problems of one decision that the index lists and the code cites, without its path.
    fn problems(name: &str, text: &str) -> Vec<String> {
        let path = format!("{DECISIONS}/{name}");
        let index = format!("# Decisions\n\n## Build\n\n## DNS\n\n- [Title]({name})\n");
        let sources = [source(INDEX, &index), source(&path, text), citing(number(name).unwrap_or("NNNN"))];
        let found = decisions(&sources);
        found.iter().map(|problem| problem.replace(&format!("{path}: "), "")).collect()
    }

    #[test]
    fn decision_with_all_parts_passes() {
        assert_eq!(problems("0001-title.md", DECISION), Vec::<String>::new());
    }

    #[test]
    fn decision_without_a_part_is_found() {
        let headings = "the headings are not Context, Decision and Consequences";
        assert_eq!(problems("0001-title.md", &DECISION.replace("## Context", "Context")), [headings]);
        let swapped =
            DECISION.replace("Context", "X").replace("Decision", "Context").replace("X", "Decision");
        assert_eq!(problems("0001-title.md", &swapped), [headings]);
        let status = "no line `Status: … Date: …`";
        assert_eq!(problems("0001-title.md", &DECISION.replace(" Date: 2026-11-20.", "")), [status]);
    }

    #[test]
    fn decision_with_a_wrong_number_is_found() {
        let title = "the title does not begin with the number of the file";
        assert_eq!(problems("0002-title.md", DECISION), [title]);
        assert_eq!(problems("1-title.md", DECISION), ["the name is not NNNN-title.md"]);
        let twice = [
            source(INDEX, "\n## DNS\n(0001-a.md) (0001-b.md)"),
            source("docs/src/decisions/0001-b.md", DECISION),
            source("docs/src/decisions/0001-a.md", DECISION),
            citing("0001"),
        ];
        assert_eq!(decisions(&twice), ["docs/src/decisions/0001-a.md: another decision has this number"]);
        assert_eq!(
            decisions(&twice[2..]),
            ["docs/src/decisions/0001-a.md: not in docs/src/decisions/README.md below `## DNS`"]
        );
    }

    #[test]
    fn decision_without_a_citation_is_found() {
        let record = || source("docs/src/decisions/0001-a.md", DECISION);
        let uncited = "docs/src/decisions/0001-a.md: no code cites it, as in `Decision NNNN says why.`";
        let index = || source(INDEX, "\n## DNS\n(0001-a.md)");
        assert_eq!(decisions(&[index(), record()]), [uncited]);
        let page = source("docs/src/a.md", &citing("0001").text);
        assert_eq!(decisions(&[index(), record(), page]), [uncited]);
        assert_eq!(decisions(&[index(), record(), citing("0001")]), Vec::<String>::new());
    }

    #[test]
    fn citation_of_no_decision_is_found() {
        let number = "0002";
        let unknown = format!("a/src/lib.rs:2: there is no decision {number}");
        assert_eq!(decisions(&[citing(number)]), [unknown]);
    }

    #[test]
    fn decision_outside_of_the_areas_is_found() {
        let areas = AREAS.join(", ");
        let of = |area: &str| problems("0001-title.md", &DECISION.replace(" Area: DNS.", area));
        assert_eq!(of(" Area: dns."), [format!("the area `dns` is none of {areas}")]);
        assert_eq!(of(" Area: Build."), [format!("not in {INDEX} below `## Build`")]);
        assert_eq!(of(""), ["the line `Status: …` does not end with `Area: ….`"]);
    }

    #[test]
    fn decision_beyond_its_limit_is_found() {
        let text = |lines: usize| format!("{DECISION}{}", "C.\n".repeat(lines - DECISION.lines().count()));
        assert_eq!(problems("0001-title.md", &text(50)), Vec::<String>::new());
        assert_eq!(problems("0001-title.md", &text(51)), ["51 lines, at most 50"]);
    }

    #[test]
    fn an_architecture_beyond_its_limit_is_found() {
        let of = |lines: usize| source("ARCHITECTURE.md", &"a\n".repeat(lines));
        assert_eq!(lengths(&[of(201)]), ["ARCHITECTURE.md: 201 lines, at most 200"]);
        assert_eq!(lengths(&[of(200)]), Vec::<String>::new());
    }

    #[test]
    fn a_readme_beyond_its_limit_is_found() {
        let of = |path: &str, lines: usize| source(path, &"a\n".repeat(lines));
        let sources = [of("README.md", 121), of("CHANGELOG.md", 500)];
        assert_eq!(lengths(&sources), ["README.md: 121 lines, at most 120"]);
        assert_eq!(lengths(&[of("README.md", 120)]), Vec::<String>::new());
    }
}
