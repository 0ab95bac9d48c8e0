//! The mirror: a router's tables that follow those of the kernel, over netlink.
//!
//! ```text
//!            decode/…          event, snapshot            reconcile, translate
//! netlink ──► messages ──► Snapshot: what the kernel has ──► Mirror: what workers read
//!    ▲                          │
//!    └── socket ◄── follow: what is to be read again, and when
//! ```
//! The kernel is the one that decides: what it took is taken, and what it derives (routes of addresses, of devices) is not derived again. What noref
//! cannot do as the kernel does is left to the kernel, and listed with its reason ([`Mirror::unsupported`]): in the tables stands a route that leads
//! to no device of the router ([`route::IfIndex::KERNEL`]), so that no other route is taken instead.

mod decode;
mod dump;
mod elsewhere;
mod event;
mod follow;
mod here;
mod object;
mod objects;
mod owned;
mod reason;
mod reconcile;
mod settings;
mod snapshot;
mod socket;
mod translate;

pub use decode::address::DeviceAddress;
pub use decode::encap::Encap;
pub use decode::link::{Device, DeviceKind};
pub use decode::nexthop::{KernelNexthop, Nexthop};
pub use decode::route::{KernelRoute, Place, Way, Ways};
pub use decode::rule::KernelRule;
pub use decode::shared::HmacKey;
pub use dump::{Dump, Progress};
pub use follow::{Follow, MirrorCounters};
pub use here::Here;
pub use object::{Object, Objects};
pub use owned::let_go;
pub use reason::{Reason, Unsupported};
pub use reconcile::Mirror;
pub use snapshot::{Dirty, Places, RouteList, Routes, Snapshot};
pub use socket::{Asker, Follower};
pub use translate::MAX_IFINDEX;
