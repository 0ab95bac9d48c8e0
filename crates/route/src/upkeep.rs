//! What tables do by themselves as time goes by.

use crate::{Editor, Tick};

impl Editor {
    /// Says what time it is. Changes that depend on it are made as of then; it stands still in between.
    pub fn set_time(&mut self, now: Tick) {
        self.now = now;
    }

    /// What time it is, as far as was said.
    pub fn time(&self) -> Tick {
        self.now
    }

    /// Does what is due by now: moves buckets of resilient groups, removes routes that have expired, and commits that; nothing else may wait to be committed.
    /// When it has something to do next.
    pub fn keep_up(&mut self) -> Option<Tick> {
        let now = self.now;
        let moved = self.buckets_move();
        let mut expires = self.first_to_expire();
        let expired = expires.is_some_and(|expires| expires <= now);
        if expired {
            self.rib6.flush(|route| route.effect.expires.is_some_and(|expires| expires <= now));
        }
        if moved || expired {
            self.commit();
            expires = self.first_to_expire();
        }
        self.buckets_due().into_iter().chain(expires).min()
    }

    /// When the first route expires.
    fn first_to_expire(&self) -> Option<Tick> {
        self.rib6.effects().filter_map(|effect| effect.expires).min()
    }
}
