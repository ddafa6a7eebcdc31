//! Glob patterns for names: `*` matches any number of characters, `?` matches one.

use gateway_core::dns::NameRef;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(Option<Box<[u8]>>);

impl Glob {
    /// Pattern that matches every name.
    pub const ALL: Glob = Glob(None);

    /// Parses a pattern, with or without a trailing dot.
    pub fn new(pattern: &str) -> Glob {
        let pattern = pattern.trim().to_ascii_lowercase();
        let pattern = match pattern.strip_suffix('.') {
            Some(rest) if !rest.is_empty() => rest,
            _ => &pattern,
        };
        match pattern {
            "" | "*" => Glob::ALL,
            pattern => Glob(Some(pattern.as_bytes().into())),
        }
    }

    pub fn matches(&self, name: NameRef<'_>) -> bool {
        self.0.as_ref().is_none_or(|pattern| matches(pattern, name.to_string().as_bytes()))
    }
}

fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Position of the last star, and end of the text that it matched.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, used)) => {
                    star = Some((at, used + 1));
                    (p, t) = (at + 1, used + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_characters() {
        for (pattern, text, expected) in [
            ("*.example.com", "www.example.com", true),
            ("*.example.com", "example.com", false),
            ("*example*", "www.example.com", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b", "aab", true),
            ("*a*b", "aabc", false),
            ("example.com", "example.com", true),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
        let name = NameRef::new(b"\x03www\x02ab\0").expect("a name");
        assert!(Glob::new("WWW.ab.").matches(name) && Glob::new("*").matches(name));
    }
}
