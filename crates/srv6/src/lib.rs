//! Segment routing over IPv6: what a SID does with a packet, and what a headend puts around one.
//!
//! The crate decides nothing about routes. A behaviour ([`Sid::input`]) and a headend ([`Policy::apply`]) change the packet in place; a behaviour
//! also says what is to be looked up [`Next`]. Behaviour is that of Linux (`seg6_local`, `seg6_iptunnel`), one file an action under `behavior/`,
//! one file a headend under `headend/`.
#![forbid(unsafe_code)]

mod advance;
mod attributes;
mod behavior;
mod build_error;
mod decap;
mod descriptor;
mod env;
mod flavors;
mod headend;
mod hmac;
mod local;
mod next;
mod next_csid;
mod policy;
mod psp;
mod sid;
mod srh;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod testing;

pub use attributes::{Attr, AttrSet, Attributes, SegmentList};
pub use behavior::{ACTIONS, action, action_by_number};
pub use build_error::BuildError;
pub use descriptor::Descriptor;
pub use env::{Env, FlowLabel};
pub use flavors::Flavors;
pub use hmac::{HmacAlgorithm, HmacKeyError, HmacKeys};
pub use local::{LocalError, LocalSrh, local_address_srh};
pub use next::{Batch, Lookup4, Lookup6, Next};
pub use policy::{Inner, Mode, Policy};
pub use sid::Sid;
