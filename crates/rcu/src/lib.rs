//! Quiescent-state RCU: readers that write nothing shared, references that the compiler bounds.
//!
//! ```
//! use rcu::{Domain, Rcu};
//!
//! let domain = Domain::new();
//! let mtu = Rcu::new(&domain, 1500u32);
//! let mut reader = domain.reader();
//!
//! let seen = reader.burst(|guard| *mtu.load(guard));
//! mtu.publish(9000);
//! assert_eq!((seen, domain.pending()), (1500, 1));
//! assert_eq!(domain.reclaim(), 1);
//! ```

mod cell;
mod domain;
mod rcu;
mod reader;
mod reference;
mod slots;
mod sync;

pub use domain::{Domain, DomainRef};
pub use rcu::Rcu;
pub use reader::{Guard, Reader};
pub use reference::Ref;
pub use slots::Slots;
