//! Reason for which a policy blocks queries, and the hops that it names.

/// Kinds of hops as they are written before a name.
const KINDS: [&str; 4] = ["tunnel ", "interface ", "proxy ", "mesh peer "];

/// Returns the reason. Without a time and a cause: each text is a route of its own, with a part of the cache.
pub(super) fn reason_of(policy: &str, down: &[String]) -> String {
    match down {
        [] => format!("the policy {policy:?} blocks"),
        [one] => format!("the policy {policy:?} blocks: {one} is down"),
        several => format!("the policy {policy:?} blocks: {} are down", several.join(", ")),
    }
}

/// Returns the names of the hops that are down, from a reason. Empty for other reasons.
pub fn hops_down(reason: &str) -> Vec<&str> {
    let Some(hops) = reason.strip_prefix("the policy ").and_then(after_quotation) else { return Vec::new() };
    let Some(hops) = hops.strip_prefix(" blocks: ") else { return Vec::new() };
    let name = |hop| KINDS.iter().find_map(|kind| str::strip_prefix(hop, kind)).unwrap_or(hop);
    match (hops.strip_suffix(" is down"), hops.strip_suffix(" are down")) {
        (Some(one), _) => vec![name(one)],
        (_, Some(several)) => several.split(", ").map(name).collect(),
        _ => Vec::new(),
    }
}

/// Returns the text behind the quoted name that it begins with.
fn after_quotation(text: &str) -> Option<&str> {
    let quoted = text.strip_prefix('"')?;
    let mut is_escaped = false;
    let end = quoted.find(|letter| {
        let is_end = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    })?;
    Some(&quoted[end + 1..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reasons_of_another_kind_name_no_hops() {
        for reason in ["the device is blocked", "", "the policy", "the policy \"x", "the policy \"x\" blocks"]
        {
            assert_eq!(hops_down(reason), Vec::<&str>::new(), "{reason}");
        }
        assert_eq!(hops_down("the policy \"x\" blocks: mesh peer far is down"), ["far"]);
    }

    proptest! {
        #[test]
        fn hops_are_read_as_they_were_written(policy in "\\PC{0,20}", hops in prop::collection::vec("[a-z][a-z0-9 .\"-]{0,9}[a-z]", 1..4)) {
            let down: Vec<String> = hops.iter().zip(KINDS.iter().cycle()).map(|(hop, kind)| format!("{kind}{hop}")).collect();
            let reason = reason_of(&policy, &down);
            prop_assert_eq!(hops_down(&reason), hops);
        }
    }
}
