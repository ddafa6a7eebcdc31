//! Content negotiation: the coding of a file by `Accept-Encoding`, and the question whether a browser asks for a page by
//! `Accept` (RFC 9110, section 12.5).

use http::header::{self, HeaderMap, HeaderName};

/// Content coding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Identity,
}

/// Weight of the identity if a request does not name it: it is acceptable, after all that are named.
const UNNAMED_IDENTITY: u16 = 1;

impl Coding {
    /// Codings from the smallest result to the largest.
    const ALL: [Coding; 2] = [Coding::Gzip, Coding::Identity];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Identity => "identity",
        }
    }

    fn is_named(self, name: &str) -> bool {
        // RFC 9110, section 8.4.1.3: x-gzip is equivalent.
        name.eq_ignore_ascii_case(self.name())
            || (self == Coding::Gzip && name.eq_ignore_ascii_case("x-gzip"))
    }

    /// Returns the available coding with the highest weight, of equal ones the smaller. The identity if none is
    /// acceptable: a page that a client did not want in this form is of more use than an error.
    pub(crate) fn choose(headers: &HeaderMap, is_available: impl Fn(Coding) -> bool) -> Coding {
        let named = weighted(headers, &header::ACCEPT_ENCODING);
        let weight = |coding: Coding| {
            let exact = named.iter().find(|(name, _)| coding.is_named(name));
            let found = exact.or_else(|| named.iter().find(|(name, _)| *name == "*"));
            match (found, coding) {
                (Some((_, weight)), _) => *weight,
                (None, Coding::Identity) => UNNAMED_IDENTITY,
                (None, Coding::Gzip) => 0,
            }
        };
        let mut best = (Coding::Identity, 0);
        for coding in Self::ALL {
            if is_available(coding) && weight(coding) > best.1 {
                best = (coding, weight(coding));
            }
        }
        best.0
    }
}

/// Reports whether the request names HTML, as a browser does for a page. `*/*` does not count: programs send it, and an
/// error is of more use to them than a page.
pub fn takes_html(headers: &HeaderMap) -> bool {
    weighted(headers, &header::ACCEPT)
        .iter()
        .any(|(name, weight)| name.eq_ignore_ascii_case("text/html") && *weight > 0)
}

/// Returns the names in a list header with their weights in thousandths. One with a malformed weight counts as refused.
fn weighted<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<(&'a str, u16)> {
    let lists = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).map(item).filter(|(name, _)| !name.is_empty()).collect()
}

fn item(item: &str) -> (&str, u16) {
    let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
    let is_weight = |parameter: &&str| parameter.trim_start().starts_with(['q', 'Q']);
    let weight = match parameters.split(';').find(is_weight) {
        None => Some(1000),
        Some(parameter) => parameter.split_once('=').and_then(|(_, value)| thousandths(value.trim())),
    };
    (name.trim(), weight.unwrap_or(0))
}

/// Parses a weight from `0` to `1` with at most three decimals.
fn thousandths(value: &str) -> Option<u16> {
    let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part: u16 = format!("{decimals:0<3}").parse().ok()?;
    match (whole, part) {
        ("0", part) => Some(part),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn headers(name: HeaderName, values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, HeaderValue::from_static(value));
        }
        headers
    }

    fn chosen(values: &[&'static str]) -> Coding {
        Coding::choose(&headers(header::ACCEPT_ENCODING, values), |_| true)
    }

    #[test]
    fn the_smaller_coding_of_the_highest_weight_is_chosen() {
        for (values, expected) in [
            (&[][..], Coding::Identity),
            (&[""], Coding::Identity),
            (&["gzip, deflate, br, zstd"], Coding::Gzip),
            (&["br", "gzip"], Coding::Gzip),
            (&["br, zstd"], Coding::Identity),
            (&["X-GZIP"], Coding::Gzip),
            (&["identity;q=0.5, gzip;q=0.8"], Coding::Gzip),
            (&["br;q=0.9, gzip; Q=0.001"], Coding::Gzip),
            (&["identity, gzip;q=0.9"], Coding::Identity),
            (&["*"], Coding::Gzip),
            (&["*;q=0.3, gzip;q=0"], Coding::Identity),
            (&["gzip;q=0.0, *;q=0.000"], Coding::Identity),
            (&["gzip;q=high", "x-gzip;q=1.5, deflate"], Coding::Identity),
            (&["gzip;q=0.1234"], Coding::Identity),
        ] {
            assert_eq!(chosen(values), expected, "{values:?}");
        }
    }

    #[test]
    fn a_coding_that_is_not_available_is_not_chosen() {
        let headers = headers(header::ACCEPT_ENCODING, &["gzip"]);
        assert_eq!(Coding::choose(&headers, |coding| coding == Coding::Identity), Coding::Identity);
    }

    proptest! {
        #[test]
        fn any_value_gives_a_coding_that_is_available(value in "[ -~]{0,60}", gzip: bool) {
            let mut headers = HeaderMap::new();
            for name in [header::ACCEPT_ENCODING, header::ACCEPT] {
                headers.insert(name, HeaderValue::from_str(&value).expect("visible characters"));
            }
            let is_available = |coding| match coding {
                Coding::Gzip => gzip,
                Coding::Identity => true,
            };
            let chosen = Coding::choose(&headers, is_available);
            prop_assert!(is_available(chosen));
            let is_named = value.contains('*') || value.to_lowercase().contains(chosen.name());
            prop_assert!(chosen == Coding::Identity || is_named, "{chosen:?}");
            prop_assert!(!takes_html(&headers) || value.to_lowercase().contains("text/html"));
        }

        #[test]
        fn a_refused_coding_is_not_chosen(weights in proptest::array::uniform2(0_u16..=1000)) {
            let names = ["gzip", "identity"];
            let item = |(name, weight): (&str, &u16)| format!("{name};q={}.{:03}", weight / 1000, weight % 1000);
            let value = names.into_iter().zip(&weights).map(item).collect::<Vec<_>>().join(", ");
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_str(&value).expect("visible characters"));
            let chosen = Coding::choose(&headers, |_| true);
            let weight = |coding: Coding| weights[Coding::ALL.iter().position(|it| *it == coding).expect("listed")];
            let best = weights.into_iter().max().unwrap_or_default();
            prop_assert!(weight(chosen) == best, "{value}: {chosen:?}");
        }
    }

    #[test]
    fn only_a_browser_asks_for_a_page() {
        let takes = |values| takes_html(&headers(header::ACCEPT, values));
        assert!(takes(&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"]));
        assert!(takes(&["application/json", "Text/HTML;level=1;q=0.1"]));
        for other in [&[][..], &["*/*"], &["text/*"], &["application/json"], &["text/html;q=0"]] {
            assert!(!takes(other), "{other:?}");
        }
    }
}
