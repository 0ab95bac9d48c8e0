//! Routes: tables, rules, nexthops, neighbours; one answer to "where does this packet go".
#![forbid(unsafe_code)]

mod drop_reason;
mod ids;

pub use drop_reason::DropReason;
pub use ids::{IfIndex, PolicyId, SidId, TableId};
