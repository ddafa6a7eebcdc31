//! Callers of the kernel's wall clock. All other code receives a time or a clock, which does not run backwards.

use super::source::Source;

const CLOCKS: &[&str] = &["SystemTime::now", "Timestamp::now", "Zoned::now"];

/// Files that may read it, with the reason.
const READERS: &[(&str, &str)] = &[
    ("gateway-ctl/src/clock/system.rs", "the clock, over which the one that does not run backwards is made"),
    (
        "gateway-ctl/dns/src/downloads/disk_cache.rs",
        "marks files with the time that the file system gives others",
    ),
    ("gateway-ctl/dns/src/downloads.rs", "ages of copies on disk"),
    ("gateway-ctl/dns/src/lists/fetch.rs", "ages of copies on disk"),
    ("gateway-ctl/dns/src/transfer/fetch.rs", "ages of copies on disk"),
    ("gateway-ctl/dns/src/upstream/validate.rs", "explains what the validator decided by this clock"),
    ("gateway-ctl/dns/src/serve/test_doubles.rs", "a stand-in for the daemon, in tests only"),
];

pub fn readers(sources: &[Source]) -> Vec<String> {
    let is_own = |source: &&Source| {
        source.is_rust()
            && !source.is_test()
            && source.path.starts_with("gateway-")
            && source.path.contains("/src/")
    };
    let mut violations = Vec::new();
    for source in sources.iter().filter(is_own) {
        let reads: Vec<usize> = source
            .code()
            .filter(|(_, line)| CLOCKS.iter().any(|clock| line.contains(clock)))
            .map(|(n, _)| n)
            .collect();
        match (READERS.iter().any(|(path, _)| *path == source.path), reads.as_slice()) {
            (false, reads) => {
                violations.extend(reads.iter().map(|line| source.at(*line, "reads the wall clock")));
            }
            (true, []) => violations.push(format!("{}: reads no wall clock any more", source.path)),
            (true, _) => {}
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn another_reader_is_found_where_it_reads() {
        let sources = [
            source("gateway-ctl/src/store.rs", "//! Doc\nlet now = Timestamp::now();\n"),
            source("gateway-ctl/src/clock/system.rs", "Timestamp::now()\n"),
            source("gateway-ctl/src/store/tests.rs", "Timestamp::now()\n"),
            source("tests/src/bin/bench.rs", "Timestamp::now()\n"),
        ];
        assert_eq!(readers(&sources), ["gateway-ctl/src/store.rs:2: reads the wall clock"]);
    }

    #[test]
    fn a_row_for_a_file_that_does_not_read_is_found() {
        assert_eq!(readers(&[source("gateway-ctl/src/clock/system.rs", "fn now() {}\n")]).len(), 1);
    }
}
