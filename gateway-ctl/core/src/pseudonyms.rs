//! Pseudonyms for what a support bundle must not show: names, addresses, domains, secrets.
//!
//! The same value has the same pseudonym under one key, wherever it is, so that a reader can follow it from the
//! configuration into the log. Without the key, no reader can compute the pseudonym of a value that they guess.
//!
//! Two rules find private values. Patterns find addresses, domains, URLs and keys by their shape. [`PrivateTerms`] has the
//! texts of this gateway that people, hosts and peers chose. Words of the API and of the defaults are [`Vocabulary`], and
//! stay. Decision 0204 says why.

mod address;
mod classes;
mod json;
mod key;
mod metrics;
mod patterns;
mod pseudonymizer;
mod shapes;
mod terms;
mod vocabulary;

pub use json::for_each_string;
pub use key::PseudonymKey;
pub use pseudonymizer::Pseudonymizer;
pub use terms::PrivateTerms;
pub use vocabulary::Vocabulary;

#[cfg(test)]
mod tests;
