//! Errors with their causes, in one line.

use std::error::Error;

/// Returns an error with its causes, which often say more than the error itself. Repeated texts are omitted.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot connect{0}")]
    struct Outer(&'static str, #[source] io::Error);

    #[test]
    fn causes_follow_and_are_not_repeated() {
        let refused = || io::Error::other("refused");
        assert_eq!(with_causes(&Outer("", refused())), "cannot connect: refused");
        assert_eq!(with_causes(&Outer(": refused", refused())), "cannot connect: refused");
    }
}
