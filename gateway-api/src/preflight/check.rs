//! Result of a preflight check.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    /// Works, with a limitation that the administrator should know.
    Note,
    Failed,
}

/// Result of one check, a line of the table.
#[derive(Debug)]
pub struct Check {
    pub name: String,
    pub verdict: Verdict,
    pub result: String,
    /// Remedy; empty if none is needed.
    pub fix: String,
}

impl Check {
    pub fn ok(name: impl Into<String>, result: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, result: result.into(), fix: String::new() }
    }

    pub fn note(name: impl Into<String>, result: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Note, result: result.into(), fix: fix.into() }
    }

    pub fn failed(name: impl Into<String>, result: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Failed, result: result.into(), fix: fix.into() }
    }
}
