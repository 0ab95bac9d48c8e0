//! What the operator wants: iproute2's configuration language, read into typed commands and applied to the tables.
#![forbid(unsafe_code)]

mod addr;
mod address;
mod apply;
mod command;
mod device_type;
mod dsfield;
mod encap;
mod error;
mod ipproto;
mod keyword;
mod lexer;
mod link;
mod mark;
pub mod mirror;
mod nearest;
mod neigh;
mod nexthop;
mod nexthop_object;
mod number;
mod packets;
mod protocol;
mod route;
mod rule;
pub mod show;
mod span;
mod sr;
mod sysctl;
mod table;
mod words;

pub use self::route::{RouteCommand, RouteOperation, RouteTable};
pub use addr::{AddressCommand, AddressOperation, Broadcast};
pub use address::{Family, Prefix};
pub use apply::{Applied, Configuration, LocalSid, LocalSids, Placed, PortDevice, network_file, network_file_on, ports_of};
pub use command::Command;
pub use device_type::{DeviceType, Vlan};
pub use encap::{Encap, Seg6, Seg6Local};
pub use error::{Diagnostic, Error, Errors, Fault};

pub use link::{LinkChanges, LinkCommand, Master};
pub use mark::{MarkCommand, MarkOperation};
pub use neigh::{NeighbourCommand, NeighbourOperation};
pub use nexthop::Nexthop;
pub use nexthop_object::{NexthopCommand, NexthopKind, NexthopPut, NexthopSelector};
pub use packets::Packets;
pub use rule::{RuleCommand, RuleKind, RuleOperation};
pub use span::{Position, Span, Spanned, Word};
pub use sr::SrCommand;
pub use sysctl::{SYSCTLS, Setting, Sysctl, Target};
