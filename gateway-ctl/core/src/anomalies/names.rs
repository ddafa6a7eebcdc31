//! Names as they appear in queries: whether they look generated, and below which domain they are.

/// Length from which on a label may look generated.
const MIN_LENGTH: usize = 10;

/// Returns the domain that a name belongs to: its last two labels, or three below a short second level such as `co.uk`.
pub(super) fn domain(name: &str) -> &str {
    let name = name.trim_end_matches('.');
    let labels: Vec<usize> = name.rmatch_indices('.').map(|(at, _)| at).collect();
    let is_short = labels.first().is_some_and(|last| {
        let second = labels.get(1).map_or(0, |at| at + 1);
        name.len() - last <= 3 && last - second <= 3
    });
    match labels.get(if is_short { 2 } else { 1 }) {
        Some(at) => &name[at + 1..],
        None => name,
    }
}

/// Returns the labels of a name below its domain, joined.
pub(super) fn below_domain(name: &str) -> &str {
    let name = name.trim_end_matches('.');
    name.strip_suffix(domain(name)).unwrap_or_default().trim_end_matches('.')
}

/// Reports whether a name looks generated: its longest label has letters in an order that no language has.
pub(super) fn is_generated(name: &str) -> bool {
    let Some(label) = domain(name).split('.').next() else { return false };
    if label.len() < MIN_LENGTH || label.starts_with("xn--") || label.contains('-') {
        return false;
    }
    let is_vowel = |byte: &u8| matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y');
    let bytes = label.as_bytes();
    let vowels = bytes.iter().filter(|byte| is_vowel(byte)).count();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let runs = bytes.split(|byte| is_vowel(byte) || byte.is_ascii_digit()).map(<[u8]>::len).max();
    let longest_run = runs.unwrap_or_default();
    entropy(bytes) >= 3.0
        && (vowels * 5 < bytes.len() || longest_run >= 5 || digits >= 4 && digits < bytes.len())
}

/// Returns the Shannon entropy of bytes, in bits a byte.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let total = bytes.len() as f64;
    let shares = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / total);
    -shares.map(|share| share * share.log2()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_of_a_name_is_what_is_registered() {
        assert_eq!(domain("a.b.example.com."), "example.com");
        assert_eq!(domain("www.shop.co.uk"), "shop.co.uk");
        assert_eq!((domain("example.com"), domain("com"), domain("")), ("example.com", "com", ""));
        assert_eq!(below_domain("a.b.example.com"), "a.b");
        assert_eq!(below_domain("example.com"), "");
    }

    #[test]
    fn words_do_not_look_generated_and_random_letters_do() {
        for name in [
            "wikipedia.org",
            "microsoftonline.com",
            "googleusercontent.com",
            "stackoverflow.com",
            "a.example",
        ] {
            assert!(!is_generated(name), "{name}");
        }
        for name in ["xkqjzvbwpdfh.com", "q8w3k9z2r7t1.net", "bvcxzlkjhgfd.info"] {
            assert!(is_generated(name), "{name}");
        }
    }
}
