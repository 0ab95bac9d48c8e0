//! One row an action.

use std::fmt;

use port::Buf;
use route::DropReason;

use crate::{AttrSet, Attributes, Batch, BuildError, Env, Flavors, Next};

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

/// What an action does with packets.
pub(crate) trait Behavior: fmt::Debug + Send + Sync {
    /// Processes packets, the IPv6 header of each at the front of its buffer, cut to its payload length: the first ones of `bufs`, one at least if there
    /// are any, as far as they want the same afterwards. What is left in the buffer of one that fails has no meaning.
    fn input(&self, bufs: &mut [Buf], env: &Env<'_>) -> Batch;
}

/// An action after which every packet wants the same.
pub(crate) trait Uniform: fmt::Debug + Send + Sync {
    /// What that is.
    fn wish(&self) -> Next;

    /// Processes one packet.
    ///
    /// # Errors
    /// The reason why the packet ends here.
    fn process(&self, buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason>;
}

impl<T: Uniform> Behavior for T {
    fn input(&self, bufs: &mut [Buf], env: &Env<'_>) -> Batch {
        let mut batch = Batch::new(self.wish());
        for buf in bufs {
            let bytes = buf.len();
            if let Err(reason) = self.process(buf, env) {
                batch.failed = Some(reason);
                break;
            }
            batch.packets += 1;
            batch.bytes += bytes;
        }
        batch
    }
}
