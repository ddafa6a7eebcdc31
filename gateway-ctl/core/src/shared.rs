//! Value that is shared until it is changed.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Value behind an [`Arc`]. A clone is a reference; a change of a shared value copies it first.
#[derive(Clone, Debug, Default)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Reports whether both are the same value in memory.
    pub fn is_same(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Shared(Arc::new(value))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

/// The same value in memory is equal without a comparison of its parts.
impl<T: Eq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || *self.0 == *other.0
    }
}

impl<T: Eq> Eq for Shared<T> {}

#[cfg(test)]
mod tests {
    //! Sharing, and its end at a change.

    use super::*;

    #[test]
    fn change_of_a_clone_leaves_the_original() {
        let first = Shared::from(vec![1]);
        let mut second = first.clone();
        assert!(first.is_same(&second) && first == second);
        second.push(2);
        assert_eq!((&*first, &*second), (&vec![1], &vec![1, 2]));
        assert!(first != second && !first.is_same(&second));
        second.pop();
        assert!(first == second, "equal values in two places");
    }
}
