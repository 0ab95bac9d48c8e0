//! One row an action.

use std::fmt;

use port::Buf;
use route::DropReason;

use crate::{AttrSet, Attributes, BuildError, Env, Flavors, Next};

/// An action of a seg6local route: its identity, what it takes, how it is built. The kernel's number is the identity.
pub struct Descriptor {
    /// The name as iproute2 spells it: `End.X`.
    pub name: &'static str,
    /// The kernel's number (`SEG6_LOCAL_ACTION_…`).
    pub number: u32,
    /// Attributes without which the route is refused.
    pub required: AttrSet,
    /// Attributes that may be given. Others are ignored, as Linux does; see [`crate::Sid::ignored`].
    pub optional: AttrSet,
    /// Flavours that may be combined.
    pub flavors: Flavors,
    /// What it does, in a line, with its RFC section.
    pub summary: &'static str,
    /// Makes the behaviour of attributes of which all required ones are there and the flavours are supported.
    pub(crate) build: fn(&Attributes) -> Result<Box<dyn Behavior>, BuildError>,
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Descriptor {
    fn eq(&self, other: &Descriptor) -> bool {
        self.number == other.number
    }
}

/// What an action does with a packet.
pub(crate) trait Behavior: fmt::Debug + Send + Sync {
    /// Processes the packet whose IPv6 header is at the front of `buf`, cut to its payload length.
    ///
    /// # Errors
    /// The reason why the packet ends here; what is left in `buf` has no meaning then.
    fn input(&self, buf: &mut Buf, env: &Env<'_>) -> Result<Next, DropReason>;
}
