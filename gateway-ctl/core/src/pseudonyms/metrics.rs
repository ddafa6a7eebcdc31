//! Lines of OpenMetrics with pseudonyms: the values of labels are texts of fields.

use std::borrow::Cow;

use super::pseudonymizer::Pseudonymizer;

impl Pseudonymizer {
    /// Replaces the private values in a line of metrics. Comments and names of metrics are the gateway's own.
    pub fn metrics_line<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let Some((name, labels)) = line.split_once('{').filter(|_| !line.starts_with('#')) else {
            return Cow::Borrowed(line);
        };
        let mut all = format!("{name}{{");
        let mut rest = labels;
        // Each round takes `label="value"` and what divides it from the next one.
        while let Some((before, quoted)) = rest.split_once('"') {
            let label = before.trim_start_matches(',').trim_end_matches('=');
            let (value, behind) = unquoted(quoted);
            all.push_str(before);
            all.push('"');
            all.push_str(&escaped(&self.value(Some(label), &value)));
            all.push('"');
            rest = behind;
        }
        all.push_str(rest);
        Cow::Owned(all)
    }
}

/// Returns the text up to the quote that ends it, and what follows.
fn unquoted(quoted: &str) -> (String, &str) {
    let mut value = String::new();
    let mut signs = quoted.char_indices();
    while let Some((index, sign)) = signs.next() {
        match sign {
            '"' => return (value, &quoted[index + 1..]),
            '\\' => match signs.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped)) => value.push(escaped),
                None => {}
            },
            sign => value.push(sign),
        }
    }
    (value, "")
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
