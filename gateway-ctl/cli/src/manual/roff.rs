//! Writer for the few requests of man(7) that the pages need.

use std::fmt::Write;

#[derive(Debug)]
pub struct Roff {
    text: String,
}

impl Roff {
    pub fn new(name: &str, section: u8, volume: &str) -> Self {
        let name = escaped(&name.to_uppercase());
        let version = env!("CARGO_PKG_VERSION");
        let mut page = Self { text: String::new() };
        page.push(&format!(".TH {name} {section} \"\" \"gateway {version}\" \"{volume}\""));
        page
    }

    pub fn section(&mut self, title: &str) -> &mut Self {
        self.push(&format!(".SH {}", escaped(title)))
    }

    pub fn subsection(&mut self, title: &str) -> &mut Self {
        self.push(&format!(".SS {}", escaped(title)))
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.push(&protected(&escaped(text)))
    }

    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        self.push(".PP").text(text)
    }

    /// Adds a term; its description follows.
    pub fn entry(&mut self, term: &str) -> &mut Self {
        self.push(".TP").push(&format!("\\fB{}\\fR", escaped(term)))
    }

    pub fn bold_line(&mut self, text: &str) -> &mut Self {
        self.push(&format!("\\fB{}\\fR", escaped(text))).line_break()
    }

    pub fn line_break(&mut self) -> &mut Self {
        self.push(".br")
    }

    /// Adds lines verbatim, indented.
    pub fn example(&mut self, lines: &[String]) -> &mut Self {
        if lines.is_empty() {
            return self;
        }
        self.push(".RS").push(".nf");
        for line in lines {
            self.push(&protected(&escaped(line)));
        }
        self.push(".fi").push(".RE")
    }

    pub fn finish(self) -> String {
        self.text
    }

    fn push(&mut self, line: &str) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
        self
    }
}

/// Escapes backslashes, dashes and quotes, which roff would typeset. Options must contain the plain dash.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => safe.push_str("\\e"),
            '-' => safe.push_str("\\-"),
            '\'' => safe.push_str("\\(aq"),
            '`' => safe.push_str("\\(ga"),
            '^' => safe.push_str("\\(ha"),
            '~' => safe.push_str("\\(ti"),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Protects a dot or quote at the beginning of a line, which would be a request.
fn protected(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut page = Roff::new("a-b", 1, "V");
        page.text(".hidden 'x' -y \\z");
        assert!(page.finish().ends_with("\n\\&.hidden \\(aqx\\(aq \\-y \\ez\n"));
    }
}
