//! Character strings of zone files (RFC 1035, section 5.1): `"..."` with `\"`, `\\` and `\DDD`, an octet in decimal.

/// Character strings of a value: each quoted string is one; a value without quotes is one as a whole.
pub(super) fn strings(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut rest = text.trim_start();
    if !rest.starts_with('"') {
        return if text.contains('\0') {
            Err("The text must not contain NUL characters.".to_owned())
        } else {
            Ok(vec![text.as_bytes().to_vec()])
        };
    }
    let mut strings = Vec::new();
    while let Some(inner) = rest.strip_prefix('"') {
        let mut string = Vec::new();
        let end = read_string(inner, &mut string)?;
        strings.push(string);
        rest = inner[end..].trim_start();
    }
    if !rest.is_empty() {
        return Err("After a quoted text only further quoted texts may follow.".to_owned());
    }
    Ok(strings)
}

/// Returns the joined character strings of a value that is one text.
pub(super) fn unquote(text: &str) -> Result<String, String> {
    let joined =
        String::from_utf8(strings(text)?.concat()).map_err(|_| "The text is not UTF-8.".to_owned())?;
    if joined.contains('\0') {
        return Err("The text must not contain NUL characters.".to_owned());
    }
    Ok(joined)
}

/// Reads up to the closing quote and returns the offset after it.
fn read_string(text: &str, into: &mut Vec<u8>) -> Result<usize, String> {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok(at + 1),
            '\\' => {
                let rest = &text[at + 1..];
                let code = rest.get(..3).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
                if let Some(digits) = code {
                    into.push(digits.parse().map_err(|_| "An escape \\DDD is from \\000 to \\255.")?);
                    letters.nth(2);
                } else {
                    let letter = letters.next().ok_or("A quoted text ends with a backslash.")?.1;
                    push(letter, into);
                }
            }
            other => push(other, into),
        }
    }
    Err("A quoted text has no closing quote.".to_owned())
}

fn push(letter: char, into: &mut Vec<u8>) {
    into.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

pub(super) fn quote(text: &[u8]) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    let escape = |byte: &u8| format!("\\{byte:03}");
    for piece in text.utf8_chunks() {
        for letter in piece.valid().chars() {
            match letter {
                '"' | '\\' => quoted.extend(['\\', letter]),
                letter if letter.is_control() => {
                    quoted.extend(letter.encode_utf8(&mut [0; 4]).as_bytes().iter().map(escape));
                }
                letter => quoted.push(letter),
            }
        }
        quoted.extend(piece.invalid().iter().map(escape));
    }
    quoted.push('"');
    quoted
}

/// Returns one text unchanged, and several or those that would be read otherwise with quotes.
pub(super) fn quote_if_needed(strings: &[Vec<u8>]) -> String {
    let plain = match strings {
        [one] => std::str::from_utf8(one).ok().filter(|text| !text.contains('\0')),
        _ => None,
    };
    match plain.filter(|text| !text.trim_start().starts_with('"')) {
        Some(text) => text.to_owned(),
        None => strings.iter().map(|string| quote(string)).collect::<Vec<_>>().join(" "),
    }
}
