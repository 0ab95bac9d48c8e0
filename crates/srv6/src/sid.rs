//! A SID: an action with its attributes, ready to process packets.

use std::fmt;
use std::slice;
use std::sync::Arc;

use port::Buf;
use route::{DropReason, IfIndex};

use crate::descriptor::Behavior;
use crate::next_csid::NextCsid;
use crate::{Attr, AttrSet, Attributes, Batch, BuildError, Descriptor, Env, Flavors, Next};

/// A SID of this router. Its address is that of the route it stands on.
#[derive(Clone, Debug)]
pub struct Sid {
    descriptor: &'static Descriptor,
    attributes: Attributes,
    behavior: Arc<dyn Behavior>,
}

impl Sid {
    /// A SID with the action of `descriptor`. Accepts what Linux accepts: attributes that the action has no use for are [`Sid::ignored`].
    ///
    /// # Errors
    /// An attribute that is missing or wrong.
    pub fn build(descriptor: &'static Descriptor, attributes: &Attributes) -> Result<Sid, BuildError> {
        let action = descriptor.name;
        if let Some(attr) = descriptor.required.without(attributes.given()).iter().next() {
            return Err(BuildError::Missing { action, attr });
        }
        let unsupported = attributes.flavors.without(descriptor.flavors);
        if descriptor.optional.contains(Attr::Flavors) && !unsupported.is_empty() {
            return Err(BuildError::Flavor { action, unsupported, supported: descriptor.flavors });
        }
        let behavior = (descriptor.build)(attributes)?.into();
        Ok(Sid { descriptor, attributes: attributes.clone(), behavior })
    }

    /// The action.
    pub fn descriptor(&self) -> &'static Descriptor {
        self.descriptor
    }

    /// The attributes as they were written.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The attributes written that the action has no use for, so that the operator can be warned.
    pub fn ignored(&self) -> AttrSet {
        let mut used = self.descriptor.required.union(self.descriptor.optional);
        if !self.attributes.flavors.contains(Flavors::NEXT_CSID) {
            used = used.without(AttrSet::of(&[Attr::Lblen, Attr::Nflen]));
        }
        self.attributes.given().without(used)
    }

    /// Processes a packet that was routed to this SID: its IPv6 header is at the front of `buf`, which ends with its payload.
    ///
    /// # Errors
    /// The reason why the packet ends here; what is left in `buf` has no meaning then.
    #[inline]
    pub fn input(&self, buf: &mut Buf, env: &Env<'_>) -> Result<Next, DropReason> {
        let batch = self.behavior.input(slice::from_mut(buf), env);
        batch.failed.map_or(Ok(batch.wish), Err)
    }

    /// As [`Sid::input`] for the first ones of `bufs`, at least one if there are any, as far as they want the same afterwards.
    #[inline]
    pub fn input_all(&self, bufs: &mut [Buf], env: &Env<'_>) -> Batch {
        self.behavior.input(bufs, env)
    }

    /// As [`fmt::Display`], with devices under the names that `name` knows.
    pub fn display_with<'a>(&'a self, name: &'a dyn Fn(IfIndex) -> Option<String>) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| self.write(f, name))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, name: &dyn Fn(IfIndex) -> Option<String>) -> fmt::Result {
        let used = self.attributes.given().without(self.ignored());
        let Attributes { nh4, nh6, oif, iif: _, table, vrftable, srh, flavors, lblen: _, nflen: _, count: _ } = &self.attributes;
        write!(f, "action {}", self.descriptor.name)?;
        if let (true, Some(srh)) = (used.contains(Attr::Srh), srh) {
            write!(f, " srh {srh}")?;
        }
        if let (true, Some(table)) = (used.contains(Attr::Table), table) {
            write!(f, " table {table}")?;
        }
        if let (true, Some(table)) = (used.contains(Attr::VrfTable), vrftable) {
            write!(f, " vrftable {table}")?;
        }
        if let (true, Some(nh4)) = (used.contains(Attr::Nh4), nh4) {
            write!(f, " nh4 {nh4}")?;
        }
        if let (true, Some(nh6)) = (used.contains(Attr::Nh6), nh6) {
            write!(f, " nh6 {nh6}")?;
        }
        if let (true, Some(oif)) = (used.contains(Attr::Oif), oif) {
            match name(*oif) {
                Some(name) => write!(f, " oif {name}")?,
                None => write!(f, " oif if{}", oif.0)?,
            }
        }
        if used.contains(Attr::Flavors) {
            write!(f, " flavors {flavors}")?;
        }
        if let (true, Ok(Some(csid))) = (used.contains(Attr::Flavors), NextCsid::build(&self.attributes)) {
            write!(f, " lblen {} nflen {}", csid.lblen(), csid.nflen())?;
        }
        Ok(())
    }
}

impl PartialEq for Sid {
    fn eq(&self, other: &Sid) -> bool {
        self.descriptor == other.descriptor && self.attributes == other.attributes
    }
}

/// As iproute2 prints it: `action End.X nh6 fd00::2 oif if3`.
impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &|_| None)
    }
}
