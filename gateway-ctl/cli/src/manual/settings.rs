//! gateway.yaml(5): the commented example of the configuration, which is also the default.

use gateway_model::settings::EXAMPLE;
use roff::{Roff, bold, roman};

use super::{push_entry, push_head, push_verbatim};

/// Returns gateway.yaml(5).
pub(crate) fn page() -> String {
    let (head, keys) = split(EXAMPLE);
    let mut page = Roff::new();
    push_head(&mut page, ["GATEWAY.YAML", "5", "File Formats Manual"]);
    page.text([roman("gateway.yaml - configuration of the network gateway")])
        .control("SH", ["SYNOPSIS"])
        .text([bold("/etc/gatewayd/config.yaml")])
        .control("SH", ["DESCRIPTION"])
        .text([roman(head.join(" "))])
        .control("SH", ["KEYS"]);
    for block in keys {
        push(&mut page, &block);
    }
    page.control("SH", ["SEE ALSO"]).text([roman("gatewayd(8), gateway-ctl(1)")]);
    page.render()
}

/// Splits the file into its top comment and its blocks. A block is a key of the first level with its content.
fn split(example: &str) -> (Vec<&str>, Vec<Vec<&str>>) {
    let mut lines = example.lines();
    let head = lines.by_ref().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    let mut comment = Vec::new();
    for line in lines {
        let is_nested = line.starts_with(' ');
        match (line.trim().is_empty(), is_nested, line.starts_with('#')) {
            (true, ..) => {}
            (_, false, true) => comment.push(line),
            (_, false, false) => {
                let mut block = std::mem::take(&mut comment);
                block.push(line);
                blocks.push(block);
            }
            (_, true, _) => {
                if let Some(block) = blocks.last_mut() {
                    block.push(line);
                }
            }
        }
    }
    (head, blocks)
}

fn push(page: &mut Roff, block: &[&str]) {
    let section = block.iter().find(|line| is_key(line)).map_or("", |line| key(line));
    let nests = block.iter().filter(|line| is_key(line)).count() > 1;
    page.control("SS", [section]);
    let (mut comment, mut sample): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    for line in block {
        if let Some(text) = line.trim_start().strip_prefix('#') {
            // Text with more indentation is a sample of YAML.
            match text.starts_with("   ") || !sample.is_empty() {
                true => sample.push(text.trim_end().to_owned()),
                false => comment.push(text.trim()),
            }
            continue;
        }
        let (name, value) = (key(line), line.split_once(':').map_or("", |(_, value)| value.trim()));
        let is_section = nests && name == section && value.is_empty();
        if !is_section {
            let path = if nests { format!("{section}.{name}") } else { name.to_owned() };
            let default = if value.is_empty() { "none" } else { value };
            push_entry(page, &format!("{path} [{default}]"));
        }
        if !comment.is_empty() {
            page.text([roman(comment.join(" "))]);
        } else if !is_section {
            page.text([roman("See the section.")]);
        }
        if !sample.is_empty() {
            push_verbatim(page, sample.drain(..));
        }
        comment.clear();
    }
}

fn is_key(line: &str) -> bool {
    !line.trim_start().starts_with('#') && line.contains(':')
}

fn key(line: &str) -> &str {
    line.trim().split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_example_has_an_entry() {
        let page = page();
        for path in [
            "state_dir",
            "listen.api_addr",
            "network.wan_iface",
            "auth.local_net",
            "reconcile.interval_sec",
            "tunnels",
        ] {
            assert!(page.contains(&format!("\\fB{path} [")), "{path}:\n{page}");
        }
        let keys = EXAMPLE.lines().filter(|line| is_key(line)).count();
        let sections = EXAMPLE
            .lines()
            .filter(|line| is_key(line) && line.ends_with(':') && !line.starts_with(' '))
            .count();
        assert_eq!(page.matches(".TP\n").count(), keys - sections);
    }

    #[test]
    fn comments_are_shown_at_their_key() {
        let page = page();
        let at = page.find("\\fBreconcile.interval_sec").expect("the key");
        assert!(
            page[at..].lines().nth(1).is_some_and(|line| line.contains("at least 5")),
            "{}",
            &page[at..at + 100]
        );
    }
}
