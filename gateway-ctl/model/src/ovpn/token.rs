//! A line to its words, as OpenVPN reads it: quotes, backslashes, comments.

/// Longer lines OpenVPN refuses.
pub(super) const MAX_LINE: usize = 255;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenError {
    /// A quote that is not closed, or a backslash at the end.
    Open,
    Long,
    Control,
}

/// The words of a line; none if it is empty or a comment.
pub(super) fn tokens(line: &str) -> Result<Vec<String>, TokenError> {
    let mut words = Vec::new();
    let mut characters = line.chars().peekable();
    loop {
        while characters.next_if(|c| c.is_ascii_whitespace()).is_some() {}
        match characters.peek() {
            None | Some('#' | ';') => break,
            Some(_) => words.push(word(&mut characters)?),
        }
    }
    if !words.is_empty() && line.len() > MAX_LINE {
        return Err(TokenError::Long);
    }
    Ok(words)
}

fn word(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<String, TokenError> {
    let mut word = String::new();
    let quote = characters.next_if(|c| matches!(c, '"' | '\''));
    loop {
        let Some(next) = characters.next() else {
            return if quote.is_some() { Err(TokenError::Open) } else { Ok(word) };
        };
        match (next, quote) {
            (c, Some(open)) if c == open => return Ok(word),
            (c, None) if c.is_ascii_whitespace() => return Ok(word),
            ('\\', None | Some('"')) => word.push(characters.next().ok_or(TokenError::Open)?),
            (c, _) if c.is_control() => return Err(TokenError::Control),
            (c, _) => word.push(c),
        }
    }
}

/// A word as it is written in a file or a command so that `tokens` and OpenVPN read it back.
pub fn quoted(word: &str) -> String {
    let plain =
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:/+=@,%[]!?".contains(&b));
    if plain {
        return word.to_owned();
    }
    let mut text = String::from("\"");
    for c in word.chars() {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
    text
}
