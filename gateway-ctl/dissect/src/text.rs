//! Text of summaries: bounded, and free of characters that could confuse a terminal or a page.

use gateway_core::hexadecimal::hex_with_colons;

/// Maximum length of the text about a packet, in bytes.
pub(crate) const MAX_INFO_BYTES: usize = 512;

/// Returns the text without control characters, cut to [`MAX_INFO_BYTES`].
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len().min(MAX_INFO_BYTES));
    for character in text.chars() {
        let shown = if is_printable(character) { character } else { '\u{fffd}' };
        if clean.len() + shown.len_utf8() > MAX_INFO_BYTES {
            break;
        }
        clean.push(shown);
    }
    clean
}

/// Control and format characters, which change the direction of text among others, are left out.
fn is_printable(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Returns a MAC address in lower case with colons.
pub(crate) fn mac(bytes: &[u8]) -> String {
    hex_with_colons(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_bounded_and_without_control_characters() {
        assert_eq!(clean("a\u{1b}[2Jb\u{202e}c"), "a\u{fffd}[2Jb\u{fffd}c");
        assert!(clean(&"ä".repeat(1000)).len() <= MAX_INFO_BYTES);
        assert_eq!(mac(&[2, 0, 0, 0xab, 0, 1]), "02:00:00:ab:00:01");
    }
}
