//! Names of objects, for inputs that refer to objects by name or id.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::id::Id;
use crate::registry;
use crate::state::State;

/// Names of stored objects and of the objects in the plan.
#[derive(Debug)]
pub struct Names<'a> {
    state: &'a State,
    /// Objects of the plan, by kind and by the name or id in the plan.
    planned: BTreeMap<(&'static str, String), Id>,
    /// Objects by kind and label, built at the first lookup. An ambiguous label is absent.
    labels: OnceCell<Labels>,
}

type Labels = BTreeMap<(&'static str, String), Option<Id>>;

impl<'a> Names<'a> {
    /// The names of the stored objects of these kinds.
    pub(crate) fn new(state: &'a State) -> Names<'a> {
        Names { state, planned: BTreeMap::new(), labels: OnceCell::new() }
    }

    fn labels(&self) -> &Labels {
        self.labels.get_or_init(|| {
            let mut labels = Labels::new();
            for kind in registry::KINDS {
                for (label, id) in (kind.ops.labels)(self.state) {
                    labels.entry((kind.noun, label)).and_modify(|have| *have = None).or_insert(Some(id));
                }
            }
            labels
        })
    }

    /// Returns the number of stored objects of the kind with this label: none, one, or several.
    pub(crate) fn labelled(&self, noun: &'static str, label: &str) -> Option<Option<Id>> {
        self.labels().get(&(noun, label.to_owned())).copied()
    }

    pub(crate) fn plan(&mut self, noun: &'static str, name: &str, id: Id) {
        self.planned.entry((noun, name.to_owned())).or_insert(id);
    }

    /// The id of the object that is meant by an id, a unique name, or a name that only one object has.
    pub fn id(&self, noun: &'static str, text: &str) -> Option<Id> {
        let planned = || self.planned.get(&(noun, text.to_owned())).copied();
        let stored = || registry::kind(noun)?.find(self.state, text);
        let labelled = || self.labelled(noun, text).flatten();
        planned().or_else(stored).or_else(labelled)
    }

    /// Replaces a name by the id. An unknown name stays.
    pub fn resolve(&self, noun: &'static str, value: &mut Value) {
        if let Some(id) = value.as_str().and_then(|text| self.id(noun, text.trim())) {
            *value = Value::String(id.to_string());
        }
    }

    /// Resolves each element of a list.
    pub fn resolve_all(&self, noun: &'static str, list: Option<&mut Value>) {
        let list = list.and_then(Value::as_array_mut);
        list.into_iter().flatten().for_each(|value| self.resolve(noun, value));
    }
}
