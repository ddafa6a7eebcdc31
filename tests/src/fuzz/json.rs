//! Objects of the API from arbitrary JSON.

use gateway_model::registry::{KINDS, Kind};
use gateway_model::{EditError, State};
use jiff::Timestamp;
use serde_json::Value;

/// Minimum length of a checked secret. Shorter texts may appear elsewhere by chance.
const SHORTEST_SECRET: usize = 12;

/// Checks that any JSON is rejected with reasons, or becomes an object that can be sent back and stored. No response
/// shows a secret.
pub fn json(data: &[u8]) {
    let Ok(input) = serde_json::from_slice::<Value>(data) else { return };
    for kind in KINDS {
        create(kind, &input);
    }
}

fn create(kind: &Kind, input: &Value) {
    let secrets = secrets(kind, input);
    let hidden =
        |text: &str| assert!(!secrets.iter().any(|secret| text.contains(secret)), "a secret is shown");
    let now = Timestamp::UNIX_EPOCH;
    let before = State::new(now);
    let mut draft = before.begin(now);
    let written = match kind.create(&mut draft, input.clone()) {
        Ok(written) => written,
        Err(error) => {
            if let EditError::Invalid(problems) = &error {
                assert!(!problems.is_empty(), "a refusal without a reason");
            }
            hidden(&format!("{error} {error:?}"));
            assert!(!kind.is_changed(&draft), "a refused {} was written", kind.noun);
            return;
        }
    };
    hidden(&format!("{} {:?} {draft:?}", written.value, written.warnings));
    hidden(&format!("{:?}", kind.changes(&before, &draft, 10)));

    // A client can send an unmodified object back; only its revision changes.
    let id = written.id.to_string();
    let again = kind.replace(&mut draft, &id, None, written.value.clone());
    let again = again.unwrap_or_else(|error| panic!("{} is refused when sent back: {error}", written.value));
    assert_eq!(again.value, written.value, "sent back, it is another object");
    assert!(again.warnings.len() <= written.warnings.len(), "{:?}", again.warnings);

    // Stored objects load again.
    let mut loaded = State::new(now);
    for row in kind.changed_rows(&draft) {
        let stored = row.json.expect("nothing was deleted");
        kind.load(&mut loaded, &stored).expect("a stored row is read back");
    }
    let (shown, _) = kind.get(&loaded, &id).expect("the row is there");
    assert_eq!(shown, written.value, "stored, it is another object");
}

/// Returns the texts of the secret fields that occur nowhere else in the input.
fn secrets(kind: &Kind, input: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for path in kind.secrets {
        match path.split_once("[].") {
            Some((list, field)) => {
                let elements = input.get(list).and_then(Value::as_array).into_iter().flatten();
                found.extend(elements.filter_map(|element| element.get(field)?.as_str()));
            }
            None => found.extend(input.get(path).and_then(Value::as_str)),
        }
    }
    let whole = input.to_string();
    let alone = |secret: &&str| secret.len() >= SHORTEST_SECRET && whole.matches(secret).count() == 1;
    found.into_iter().filter(alone).map(str::to_owned).collect()
}
