//! Character strings of zone files: `"..."` with `\"`, `\\` and `\DDD`.

/// Returns the text of a value: the joined character strings if it begins with a quote, else the value itself.
pub(super) fn unquote(text: &str) -> Result<String, String> {
    let mut rest = text.trim_start();
    if !rest.starts_with('"') {
        return if text.contains('\0') {
            Err("The text must not contain NUL characters.".to_owned())
        } else {
            Ok(text.to_owned())
        };
    }
    let mut joined = String::new();
    while let Some(inner) = rest.strip_prefix('"') {
        let end = read_string(inner, &mut joined)?;
        rest = inner[end..].trim_start();
    }
    if !rest.is_empty() {
        return Err("After a quoted text only further quoted texts may follow.".to_owned());
    }
    if joined.contains('\0') {
        return Err("The text must not contain NUL characters.".to_owned());
    }
    Ok(joined)
}

/// Reads up to the closing quote and returns the offset after it.
fn read_string(text: &str, into: &mut String) -> Result<usize, String> {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok(at + 1),
            '\\' => {
                let rest = &text[at + 1..];
                let code = rest.get(..3).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
                if let Some(digits) = code {
                    let ascii = digits.parse::<u8>().ok().filter(u8::is_ascii);
                    into.push(char::from(ascii.ok_or("An escape \\DDD is from \\001 to \\127.")?));
                    letters.nth(2);
                } else {
                    into.push(letters.next().ok_or("A quoted text ends with a backslash.")?.1);
                }
            }
            other => into.push(other),
        }
    }
    Err("A quoted text has no closing quote.".to_owned())
}

pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted
}

/// Returns the text unchanged, or quoted if it would otherwise be read as quoted.
pub(super) fn quote_if_needed(text: &str) -> String {
    if text.trim_start().starts_with('"') { quote(text) } else { text.to_owned() }
}
