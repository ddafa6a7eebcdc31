//! Lines of a file that both directions write.

use super::Directive;
use super::token::quoted;

/// Placeholder for a key that is not shown.
pub(super) const HIDDEN: &str = "***";

/// A directive as a line of a file.
pub(super) fn line(directive: &Directive) -> String {
    let mut line = directive.name.to_owned();
    for argument in &directive.arguments {
        line.push(' ');
        line.push_str(&quoted(argument));
    }
    line
}
