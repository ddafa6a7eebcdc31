//! Escapes of untrusted text for a terminal and for a line of a table.

use std::fmt::Write;

/// Writes `\t`, `\n` and `\\` with their letters, and every other control character as `\xNN`.
///
/// Besides the ASCII control characters, this covers those of C1, which some terminals obey. It also covers the
/// bidirectional control characters, with which a name can look like another one.
pub(crate) fn cell(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\t' => safe.push_str("\\t"),
            '\n' => safe.push_str("\\n"),
            '\\' => safe.push_str("\\\\"),
            letter if is_hostile(letter) => push_bytes(&mut safe, letter),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Escapes a message like [`cell`], but keeps backslashes.
pub(crate) fn text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\t' => safe.push_str("\\t"),
            '\n' => safe.push_str("\\n"),
            letter if is_hostile(letter) => push_bytes(&mut safe, letter),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Escapes JSON without a change of its value: hostile characters left unescaped in it become `\uNNNN`.
pub(crate) fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        // The serializer wrote these line ends and the indentation: inside strings they are already escaped.
        if letter != '\n' && is_hostile(letter) {
            // All hostile characters are in the Basic Multilingual Plane. Writing to a string cannot fail.
            let _ = write!(safe, "\\u{:04x}", u32::from(letter));
        } else {
            safe.push(letter);
        }
    }
    safe
}

fn is_hostile(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push_bytes(safe: &mut String, letter: char) {
    let mut bytes = [0; 4];
    for byte in letter.encode_utf8(&mut bytes).bytes() {
        let _ = write!(safe, "\\x{byte:02X}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_stays_one_cell() {
        assert_eq!(cell("a\tb\nc\\d"), "a\\tb\\nc\\\\d");
    }

    #[test]
    fn control_bytes_do_not_reach_the_terminal() {
        assert_eq!(cell("\u{1b}[31mred\u{7}\r\0"), "\\x1B[31mred\\x07\\x0D\\x00");
        assert_eq!(cell("\u{9b}31m"), "\\xC2\\x9B31m");
        assert_eq!(cell("abc\u{202e}fdp"), "abc\\xE2\\x80\\xAEfdp");
    }

    #[test]
    fn other_scripts_stay_as_they_are() {
        assert_eq!(cell("Küche 客厅 🖨"), "Küche 客厅 🖨");
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"name": "x\u{9b}\u{7f}\u{202e}\u{1b}\n"});
        let shown = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(shown.chars().all(|letter| letter == '\n' || !is_hostile(letter)), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
