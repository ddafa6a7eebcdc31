//! Positions of keys in a YAML text, so that an error has line and column.
//!
//! Reads block style by indentation and does not validate the text: the YAML parser has accepted it already. Inside
//! flow style (`{a: 1}`) only the outermost key is known, and errors there are shown at it.

use std::collections::BTreeMap;

/// Line and column, both from 1.
pub(super) type Position = (usize, usize);

/// Positions of keys and list elements by path (`wans[0].interface`).
#[derive(Debug, Default)]
pub(super) struct Positions(BTreeMap<String, Position>);

struct Frame {
    indent: usize,
    /// Path of the mapping or list.
    path: String,
    /// Index of the present element, for lists.
    index: Option<usize>,
}

impl Positions {
    pub(super) fn of(text: &str) -> Positions {
        let mut scan = Scan::default();
        for (number, line) in text.lines().enumerate() {
            scan.line(number + 1, line);
        }
        Positions(scan.found)
    }

    /// Returns the position of the path, or of its nearest ancestor.
    pub(super) fn find(&self, path: &str) -> Position {
        let mut path = path;
        loop {
            if let Some(position) = self.0.get(path) {
                return *position;
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return (1, 1),
            }
        }
    }
}

#[derive(Default)]
struct Scan {
    found: BTreeMap<String, Position>,
    frames: Vec<Frame>,
    /// Path of the last key or element: the parent of deeper ones.
    last: String,
    /// Indentation of a key with a block scalar: deeper lines are its text.
    scalar: Option<usize>,
}

impl Scan {
    fn line(&mut self, number: usize, line: &str) {
        let mut column = line.len() - line.trim_start_matches(' ').len();
        let mut content = line[column..].trim_end();
        if content.is_empty() {
            return;
        }
        match self.scalar {
            Some(indent) if column > indent => return,
            _ => self.scalar = None,
        }
        if content.starts_with('#') || content == "---" || content == "..." {
            return;
        }
        while let Some(rest) =
            content.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with(' '))
        {
            self.element(number, column);
            let trimmed = rest.trim_start_matches(' ');
            column += content.len() - trimmed.len();
            content = trimmed;
        }
        if let Some((key, value)) = key_of(content) {
            self.key(number, column, &key);
            if value.starts_with(['|', '>']) {
                self.scalar = Some(column);
            }
        }
    }

    fn element(&mut self, number: usize, column: usize) {
        self.frames.truncate(self.frames.iter().take_while(|frame| frame.indent <= column).count());
        match self.frames.last_mut() {
            Some(Frame { indent, index: Some(index), .. }) if *indent == column => *index += 1,
            _ => self.frames.push(Frame { indent: column, path: self.last.clone(), index: Some(0) }),
        }
        let frame = self.frames.last().expect("one was just found or pushed");
        self.last = format!("{}[{}]", frame.path, frame.index.unwrap_or_default());
        self.found.insert(self.last.clone(), (number, column + 1));
    }

    fn key(&mut self, number: usize, column: usize, key: &str) {
        while let Some(frame) = self.frames.last() {
            if frame.indent > column || (frame.indent == column && frame.index.is_some()) {
                self.frames.pop();
            } else {
                break;
            }
        }
        if self.frames.last().is_none_or(|frame| frame.indent != column) {
            let path = if self.frames.is_empty() { String::new() } else { self.last.clone() };
            self.frames.push(Frame { indent: column, path, index: None });
        }
        let parent = self.frames.last().map_or("", |frame| frame.path.as_str());
        self.last = if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") };
        self.found.entry(self.last.clone()).or_insert((number, column + 1));
    }
}

/// The key and the rest of a line `key: value`.
fn key_of(content: &str) -> Option<(String, &str)> {
    if let Some(quote) = content.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (key, rest) = content[1..].split_once(quote)?;
        return Some((key.to_owned(), rest.trim_start().strip_prefix(':')?.trim_start()));
    }
    if content.starts_with(['{', '[', '#', '&', '*']) {
        return None;
    }
    let (key, rest) = match content.split_once(": ") {
        Some(split) => split,
        None => (content.split(" #").next()?.trim_end().strip_suffix(':')?, ""),
    };
    Some((key.trim_end().to_owned(), rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
# comment: no key
listen:
  api_addr: 127.0.0.1:8080

network:
  wans:
  - name: a
    interface: eth0
  -   name: b
  lan_iface:
    - eth1
    - eth2
  \"quoted\": 1
notes: |
  looks: like a key
    deeper: too
dns: { listen_addr: x }
tail:    # with a comment
  key: 1
";

    #[test]
    fn positions_of_keys_and_elements_are_found() {
        let positions = Positions::of(TEXT);
        let cases = [
            ("listen", (2, 1)),
            ("listen.api_addr", (3, 3)),
            ("network.wans", (6, 3)),
            ("network.wans[0]", (7, 3)),
            ("network.wans[0].name", (7, 5)),
            ("network.wans[0].interface", (8, 5)),
            ("network.wans[1].name", (9, 7)),
            ("network.lan_iface", (10, 3)),
            ("network.lan_iface[1]", (12, 5)),
            ("network.quoted", (13, 3)),
            ("notes", (14, 1)),
            ("dns", (17, 1)),
            ("tail.key", (19, 3)),
        ];
        for (path, want) in cases {
            assert_eq!(positions.find(path), want, "{path}");
        }
    }

    #[test]
    fn missing_keys_are_shown_at_their_parent() {
        let positions = Positions::of(TEXT);
        assert_eq!(positions.find("dns.listen_addr"), (17, 1));
        assert_eq!(positions.find("network.wans[1].interface"), (9, 3));
        assert_eq!(positions.find("tls.enabled"), (1, 1));
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "(\\PC|[ \\n:#'\"|-]){0,200}") {
            Positions::of(&text).find("a.b[0]");
        }
    }
}
