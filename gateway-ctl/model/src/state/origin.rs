//! Owners of objects: the gateway itself, or the node that an object came from by federation.
//!
//! Only a draft that receives from a node writes its objects, and it writes no others. Decision 0209 says why.

use super::State;
use crate::edit::EditError;
use crate::id::Id;
use crate::resource::{Meta, Resource};

impl State {
    /// Lets the draft write the objects of this node, and no others.
    pub(crate) fn receive_from(&mut self, node: Id) {
        self.receiving = Some(node);
    }

    /// Ends [`State::receive_from`].
    pub(crate) fn end_receiving(&mut self) {
        self.receiving = None;
    }

    /// Refuses a change of an object that another gateway owns.
    pub(super) fn admit_origin<R: Resource>(&self, row: &R) -> Result<(), EditError> {
        let Meta { id, origin_node, .. } = *row.meta();
        if origin_node == self.receiving {
            return Ok(());
        }
        let (noun, label) = (R::NOUN.replace('_', " "), row.label());
        let message = match origin_node.map(|node| self.nodes.get(node)) {
            Some(Some(node)) => {
                format!("The {noun} {label:?} came from the node {}: change it there.", node.name)
            }
            Some(None) => format!("The {noun} {label:?} came from another gateway: change it there."),
            None => format!("The {noun} {label:?} is owned by this gateway."),
        };
        Err(EditError::WrongState { resource_type: R::NOUN, id, state: "received", message })
    }

    /// Makes the objects of a kind that came from a node objects of this gateway.
    pub(crate) fn adopt<R: Resource>(&mut self, node: Id) {
        let of_node = |row: &&R| row.meta().origin_node == Some(node);
        let rows: Vec<R> = R::table(self).iter().filter(of_node).cloned().collect();
        for mut row in rows {
            row.meta_mut().origin_node = None;
            // The keys of a row do not come from its owner, so it cannot clash with another one.
            let put = self.put(row);
            debug_assert!(put.is_ok());
        }
    }

    /// Returns the number of objects of all kinds that came from a node.
    pub fn received_from(&self, node: Id) -> usize {
        super::KINDS.iter().map(|kind| (kind.ops.owned)(self, Some(node)).len()).sum()
    }
}
