//! Commands of a shell script, limited to the syntax of the examples: quotes, variables, substitutions, pipes,
//! redirections and here-documents.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// Placeholder of a value that is known at run time only: a variable or the output of a command.
pub(super) const UNKNOWN: &str = "VALUE";

/// Commands and files of a script.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Words of each command, without assignments and redirections.
    pub commands: Vec<Vec<String>>,
    /// Here-documents by the file that receives them.
    pub files: BTreeMap<String, String>,
}

/// Parses a script. `variables` have known values.
pub(super) fn parse(text: &str, variables: &[(&str, &str)]) -> Script {
    let mut parser = Parser {
        rest: text.chars().peekable(),
        variables,
        script: Script::default(),
        words: Vec::new(),
        word: None,
        redirected: None,
        file: None,
        delimiter: None,
    };
    parser.run();
    parser.script
}

/// Kind of redirection that the next word belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Redirected {
    Input,
    Output,
    Document,
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    variables: &'a [(&'a str, &'a str)],
    script: Script,
    words: Vec<String>,
    word: Option<String>,
    redirected: Option<Redirected>,
    file: Option<String>,
    delimiter: Option<String>,
}

impl Parser<'_> {
    fn run(&mut self) {
        while let Some(c) = self.rest.next() {
            match c {
                '\n' => {
                    self.end_command();
                    self.here_document();
                }
                ' ' | '\t' => self.end_word(),
                '\\' => match self.rest.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped),
                },
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '\'' => {
                    let quoted: String = self.until('\'');
                    self.push_all(&quoted);
                }
                '"' => self.double_quoted(),
                '$' => self.expansion(),
                '|' | ';' | '&' | '(' | ')' => self.end_command(),
                '>' | '<' => self.redirection(c),
                c => self.push(c),
            }
        }
        self.end_command();
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn push_all(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn until(&mut self, end: char) -> String {
        let mut text = String::new();
        while let Some(c) = self.rest.next_if(|c| *c != end) {
            text.push(c);
        }
        self.rest.next();
        text
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return,
                '\\' => match self.rest.next() {
                    Some('\n') | None => {}
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => self.push(escaped),
                    Some(other) => {
                        self.push('\\');
                        self.push(other);
                    }
                },
                '$' => self.expansion(),
                c => self.push(c),
            }
        }
    }

    /// Reads the rest of an expansion after the dollar sign.
    fn expansion(&mut self) {
        if self.rest.next_if_eq(&'(').is_some() {
            let inner = self.substitution();
            let Script { commands, files } = parse(&inner, self.variables);
            self.script.commands.extend(commands);
            self.script.files.extend(files);
            return self.push_all(UNKNOWN);
        }
        let name: String = if self.rest.next_if_eq(&'{').is_some() {
            self.until('}')
        } else {
            let mut name = String::new();
            while let Some(c) = self.rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
                name.push(c);
            }
            name
        };
        let known = self.variables.iter().find(|(variable, _)| *variable == name);
        let value = known.map_or(UNKNOWN, |(_, value)| value);
        self.push_all(value);
    }

    /// Returns the text up to the parenthesis that closes a substitution.
    fn substitution(&mut self) -> String {
        let (mut text, mut depth) = (String::new(), 0);
        while let Some(c) = self.rest.next() {
            match c {
                '(' => depth += 1,
                ')' if depth == 0 => break,
                ')' => depth -= 1,
                '\'' | '"' => {
                    text.push(c);
                    text.push_str(&self.until(c));
                }
                _ => {}
            }
            text.push(c);
        }
        text
    }

    fn redirection(&mut self, c: char) {
        // The number of a descriptor belongs to the redirection.
        if self.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        let doubled = self.rest.next_if_eq(&c).is_some();
        self.redirected = Some(match (c, doubled) {
            ('<', true) => Redirected::Document,
            ('<', false) => Redirected::Input,
            _ => Redirected::Output,
        });
        // `2>&1` names a descriptor.
        if self.rest.next_if_eq(&'&').is_some() {
            self.rest.next();
            self.redirected = None;
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.redirected.take() {
            Some(Redirected::Document) => self.delimiter = Some(word),
            Some(Redirected::Output) => self.file = Some(word),
            Some(Redirected::Input) => {}
            None if self.words.is_empty() && is_assignment(&word) => {}
            None => self.words.push(word),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.script.commands.push(std::mem::take(&mut self.words));
        }
    }

    fn here_document(&mut self) {
        let file = self.file.take();
        let Some(delimiter) = self.delimiter.take() else { return };
        let mut text = String::new();
        while self.rest.peek().is_some() {
            let line = self.until('\n');
            if line == delimiter {
                break;
            }
            text.push_str(&line);
            text.push('\n');
        }
        if let Some(file) = file {
            self.script.files.insert(file, text);
        }
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<Vec<String>> {
        parse(text, &[("api", "http://h/v1")]).commands
    }

    #[test]
    fn words_are_put_together_from_quoted_parts() {
        assert_eq!(commands(r#"a 'b "c'd"e $api" \"x\" # no"#), [["a", r#"b "cde http://h/v1"#, r#""x""#]]);
        assert_eq!(commands("a -d '{\"v\":\"'$id'\"}' \\\n  b"), [["a", "-d", "{\"v\":\"VALUE\"}", "b"]]);
    }

    #[test]
    fn pipes_lists_and_substitutions_are_commands_of_their_own() {
        let found = commands("id=$(curl \"$api/x\" -d '(' | jq -r .id)\na && b; c | d > out 2>/dev/null\n");
        let wanted: [&[&str]; 6] =
            [&["curl", "http://h/v1/x", "-d", "("], &["jq", "-r", ".id"], &["a"], &["b"], &["c"], &["d"]];
        assert_eq!(found, wanted);
    }

    #[test]
    fn here_documents_are_kept_by_their_file() {
        let script = parse("cat > plan.json <<'END'\n{\"a\": $b}\nEND\nls\n", &[]);
        assert_eq!(script.files["plan.json"], "{\"a\": $b}\n");
        let wanted: [&[&str]; 2] = [&["cat"], &["ls"]];
        assert_eq!(script.commands, wanted);
    }
}
