//! Suggestions ("Did you mean …"): the word nearest to a mistyped one.

/// Returns the nearest word, if it is similar enough.
pub fn nearest<'a>(typed: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let near = |word: &str| {
        let distance = distance(&typed, word);
        let begins = typed.chars().count() >= 2 && word.starts_with(&typed);
        // Up to a third of the letters may differ.
        (begins || distance * 3 <= word.chars().count().max(3)).then_some(distance)
    };
    words
        .into_iter()
        .filter_map(|word| Some((near(word)?, word)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Returns the edit distance: letters to insert, delete, replace or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_word() {
        let words = ["devices", "device-groups", "tunnels", "status"];
        assert_eq!(nearest("devcies", words), Some("devices"));
        assert_eq!(nearest("device", words), Some("devices"));
        assert_eq!(nearest("tunel", words), Some("tunnels"));
        assert_eq!(nearest("STATUS", words), Some("status"));
        assert_eq!(nearest("stat", words), Some("status"));
    }

    #[test]
    fn a_distant_word_has_no_suggestion() {
        assert_eq!(nearest("firewall", ["devices", "tunnels"]), None);
        assert_eq!(nearest("", ["dns", "ai"]), None);
        assert_eq!(nearest("x", ["ai"]), None);
    }
}
