//! Changes of a commit in its audit entry: objects, settings and their fields.

use std::collections::BTreeMap;

use gateway_model::State;
use gateway_model::bulk_edit::FieldDiff;
use gateway_model::field_diff;
use gateway_model::registry::KINDS;
use serde_json::{Value, json};

use super::AuditTicket;

/// Maximum number of changes that an entry lists; it counts the rest.
const LISTED_CHANGES: usize = 20;

/// Maximum length of the field differences of an entry as JSON, in bytes. Changes beyond it name their fields only.
const MAX_DIFF_BYTES: usize = 16 * 1024;

/// Adds the changed objects and settings to the ticket, with their fields. Secrets are reported as changed, without
/// their values. Fills in the ticket's resource ID if the draft changed a single object of its resource type.
pub(in crate::store) fn note_changes(ticket: &mut AuditTicket, before: &State, draft: &State) {
    let settings = draft.settings.dirty();
    let total = KINDS.iter().map(|kind| kind.changed_count(draft)).sum::<usize>() + settings.len();
    if total == 0 {
        return;
    }
    let mut changes = Vec::new();
    for kind in KINDS {
        let listed = kind.changes(before, draft, LISTED_CHANGES - changes.len());
        changes.extend(listed.into_iter().map(|change| (kind, change)));
    }
    if ticket.resource_id.is_none() {
        let mut of_type = changes.iter().filter(|(kind, _)| kind.noun == ticket.resource_type);
        if let (Some((_, only)), None, true) = (of_type.next(), of_type.next(), total <= LISTED_CHANGES) {
            ticket.resource_id = Some(only.id.to_string());
        }
    }
    let mut room = MAX_DIFF_BYTES;
    let mut shown = Vec::with_capacity(total.min(LISTED_CHANGES));
    for (kind, change) in changes {
        let mut entry =
            json!({ "op": change.op.as_str(), "type": kind.noun, "id": change.id, "name": change.label });
        if !change.fields.is_empty() {
            entry["fields"] = json!(change.fields);
        }
        add_diff(&mut entry, kind.audited_fields(before, draft, change.id), &mut room);
        shown.push(entry);
    }
    for key in settings.iter().take(LISTED_CHANGES - shown.len()) {
        let op = if draft.settings.get(key).is_some() { "set" } else { "unset" };
        let mut entry = json!({ "op": op, "type": "setting", "name": key });
        add_diff(&mut entry, field_diff::setting(before, draft, key), &mut room);
        shown.push(entry);
    }
    if !ticket.details.is_object() {
        let given = ticket.details.take();
        ticket.details = if given.is_null() { json!({}) } else { json!({ "note": given }) };
    }
    if total > shown.len() {
        ticket.details["changes_total"] = total.into();
    }
    ticket.details["changes"] = shown.into();
}

/// Adds the field differences of a change, as far as the entry has room.
fn add_diff(entry: &mut Value, diff: BTreeMap<String, FieldDiff>, room: &mut usize) {
    if diff.is_empty() {
        return;
    }
    let diff = serde_json::to_value(diff).expect("field differences have string keys");
    match room.checked_sub(diff.to_string().len()) {
        Some(left) => {
            *room = left;
            entry["diff"] = diff;
        }
        None => *room = 0,
    }
}
