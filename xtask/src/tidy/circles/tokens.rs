//! Tokens of Rust source, limited to the needs of imports: names, `::` and single marks.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    Colons,
    Mark(char),
}

/// Reads the tokens of a file without comments and literals.
pub(super) fn read(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_text(rest) {
            length
        } else if first == '"' {
            literal(rest, '"')
        } else if first == '\'' {
            character(rest)
        } else if rest.starts_with("::") {
            tokens.push(Token::Colons);
            2
        } else if is_name(first) {
            let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            tokens.push(Token::Name(&rest[..length]));
            length
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Mark(first));
            }
            first.len_utf8()
        };
        rest = &rest[skip..];
    }
    tokens
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of a literal between two equal marks.
fn literal(text: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == mark => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of `r"…"` or `r#"…"#`.
fn raw_text(text: &str) -> Option<usize> {
    let body = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - body.len() + hashes + 1;
    body[hashes..]
        .starts_with('"')
        .then(|| text[start..].find(&end).map_or(text.len(), |at| start + at + end.len()))
}

/// Returns the length of a character literal, or of the mark that begins a lifetime.
fn character(text: &str) -> usize {
    let mut after = text.chars().skip(1);
    match (after.next(), after.next()) {
        (Some('\\'), _) | (_, Some('\'')) => literal(text, '\''),
        _ => 1,
    }
}

/// Removes items that exist in tests only.
pub(super) fn without_tests(tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    use Token::{Mark, Name};
    const TESTS: [Token<'_>; 7] =
        [Mark('#'), Mark('['), Name("cfg"), Mark('('), Name("test"), Mark(')'), Mark(']')];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].starts_with(&TESTS) {
            at += TESTS.len();
            at += item(&tokens[at..]);
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// Returns the number of tokens of the first item.
fn item(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_u32;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Mark('{' | '(' | '[') => depth += 1,
            Token::Mark('}' | ')' | ']') if depth == 0 => return at,
            Token::Mark(')' | ']') => depth -= 1,
            Token::Mark('}') => {
                depth -= 1;
                // A list of imports continues to its `;`.
                if depth == 0 && tokens.get(at + 1) != Some(&Token::Mark(';')) {
                    return at + 1;
                }
            }
            Token::Mark(';') if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&str> {
        let tokens = without_tests(read(text));
        tokens
            .iter()
            .filter_map(|token| if let Token::Name(name) = token { Some(*name) } else { None })
            .collect()
    }

    #[test]
    fn literals_and_comments_are_no_names() {
        let text = r##"a('x', '\'', "b \" c", r#"d " e"#, b"f"); // g
            /* h */ i::<'_>(j)"##;
        assert_eq!(names(text), ["a", "b", "i", "_", "j"]);
    }

    #[test]
    fn test_items_are_left_out_and_nothing_else() {
        let text = "#[cfg(test)] mod tests;\nfn a() {}\n#[cfg(test)] use b::{c, d};\n\
                    #[cfg(test)] #[path = \"x\"] mod e { fn f() { g(); } }\nstruct H;";
        assert_eq!(names(text), ["fn", "a", "struct", "H"]);
    }
}
