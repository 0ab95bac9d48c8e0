//! Routes: tables, rules, nexthops, neighbours; one answer to "where does this packet go".
//!
//! Workers read a [`Network`] under an RCU guard; one [`Editor`] changes it.
#![forbid(unsafe_code)]

mod address;
mod addresses;
mod draft;
mod drop_reason;
mod dst;
mod dst_cache;
mod error;
mod fib;
mod flow;
mod generation;
mod ids;
mod interfaces;
mod link;
mod marks;
mod mirrored;
mod multipath;
mod naming;
mod neighbour;
mod network;
mod nexthops;
mod policy;
mod resilient;
mod rib;
mod routes;
mod rule;
mod scope;
mod select;
mod settings;
mod source;
mod tick;
mod trail;
mod upkeep;
mod vlan;

pub use address::{Address, Prefix};
pub use addresses::AddrSpec;
pub use drop_reason::DropReason;
pub use dst::{Dst, DstRef, Encap, Kind, Metrics, Nexthop, Sharing};
pub use dst_cache::DstCache;
pub use error::ConfigError;
pub use fib::{Answer, Fib, RouteRefs, Scope, Table};
pub use flow::{Flow, Upper};
pub use ids::{IfIndex, PolicyId, SidId, TableId};
pub use interfaces::LinkChange;
pub use link::{Address4, Address6, Conf4, Conf6, Link, LinkKind, Links};
pub use marks::{MarkRule, Marks};
pub use mirrored::MirroredRoute;
pub use multipath::{HashField, Multipath};
pub use neighbour::{Neighbour, NeighbourState, Neighbours};
pub use network::{Editor, Family, Network};
pub use nexthops::{NexthopDoes, NexthopObject, NexthopSpec};
pub use resilient::{Buckets, Resilient, ResilientSpec};
pub use rib::{Effect, FastHash, Hop, Put, RouteEntry};
pub use routes::{HopSpec, More, RouteSpec};
pub use rule::{Action, Mark, Ports, Rule, Selector};
pub use scope::{SCOPE_HOST, SCOPE_LINK, SCOPE_UNIVERSE};
pub use select::{Choice, Select};
pub use settings::Settings;
pub use tick::Tick;
pub use trail::Outcome;
pub use vlan::{
    VLAN_8021AD, VLAN_8021Q, VLAN_CODE_POINTS, VLAN_MAX_ID, VLAN_MAX_TAGS, VLAN_NUMBER, VlanChange, VlanSettings, VlanTag, WayOut,
};
