//! What goes wrong again and again, told once.

use std::fmt::Display;

use crate::stderr::say;

/// The last that was told of one thing that may go wrong.
#[derive(Default)]
pub struct Complaint(Option<String>);

impl Complaint {
    /// Tells the operator, unless it is what was told last.
    pub fn tell(&mut self, what: impl Display) {
        let what = what.to_string();
        if self.0.as_ref() != Some(&what) {
            say(&what);
        }
        self.0 = Some(what);
    }

    /// It went well: should it go wrong again, that is told.
    pub fn forget(&mut self) {
        self.0 = None;
    }
}
