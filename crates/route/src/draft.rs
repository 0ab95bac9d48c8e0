//! A value that is being changed, and what it was when it was last committed.

use std::ops::{Deref, DerefMut};

/// What a commit publishes if it was changed. Whoever could change it has had it remembered first, so that it can be taken back.
pub(crate) struct Draft<T> {
    now: T,
    /// As it was committed; none while nobody has changed it since.
    committed: Option<T>,
}

impl<T: Clone> Draft<T> {
    /// A value that counts as committed.
    pub(crate) fn new(value: T) -> Draft<T> {
        Draft { now: value, committed: None }
    }

    /// True when it may have been changed since it was committed.
    pub(crate) fn is_changed(&self) -> bool {
        self.committed.is_some()
    }

    /// Keeps it as it is now; whether it may have been changed.
    pub(crate) fn commit(&mut self) -> bool {
        self.committed.take().is_some()
    }

    /// Makes it what it was when it was committed.
    pub(crate) fn rollback(&mut self) {
        if let Some(committed) = self.committed.take() {
            self.now = committed;
        }
    }
}

impl<T> Deref for Draft<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.now
    }
}

impl<T: Clone> DerefMut for Draft<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.committed.get_or_insert_with(|| self.now.clone());
        &mut self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_committed_is_taken_back() {
        let mut draft = Draft::new(vec![1]);
        assert!(!draft.is_changed() && draft.len() == 1 && !draft.commit());
        draft.push(2);
        assert!(draft.commit());
        draft.push(3);
        draft.push(4);
        draft.rollback();
        assert_eq!((draft.as_slice(), draft.is_changed()), ([1, 2].as_slice(), false));
    }
}
