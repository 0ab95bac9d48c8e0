//! Quiescent-state RCU: readers that write nothing shared, and borrows that the compiler ends in time.
//!
//! A worker reads in *bursts*. What is published ([`Rcu`], [`Slots`]) is borrowed for the burst through its
//! [`Guard`]; at the end the worker stores the domain's epoch to a cache line of its own, and that is all it
//! ever writes. A writer replaces a value with one pointer store and *retires* the old one, which is dropped
//! after a *grace period*: when every reader that is online has finished a burst.
//!
//! ```text
//!  worker A  ──[ burst ]E──[ burst ]E──[ burst ]E──        E  stores the epoch to its own line
//!  worker B  ────[    burst     ]E────[  burst   ]E        no lock, no fence, no count per packet
//!  worker C  ──[ burst ]  offline ─────────────────        holds up nothing
//!                     │          ┊
//!  writer     publish ┘          ┊
//!             retire old ········└ reclaim drops it: A and B have passed a burst since
//! ```
//!
//! A borrow cannot be stored, returned or sent out of its burst: `'g` in [`Guard<'g>`](Guard) belongs to that burst
//! alone, and [`Reader::burst`] takes the reader mutably, so that bursts do not nest. What must live longer, such as
//! the route of a packet that waits, is *held*: [`Ref::hold`] counts one reference and gives a `Ref<'static, T>`.
//! `tests/ui` shows what does not compile.
//!
//! ```
//! use std::sync::Arc;
//!
//! use rcu::{Domain, Ref, Slots};
//!
//! let domain = Domain::new();
//! let routes = Slots::new(&domain);
//! let id = routes.insert(Arc::new(1500u32));
//! let mut worker = domain.reader();
//!
//! let mut waiting: Vec<Ref<'static, u32>> = Vec::new();
//! worker.burst(|guard| {
//!     if let Some(route) = routes.get(guard, id) {
//!         assert_eq!((*route, route.is_held()), (1500, false));
//!         waiting.push(route.hold());
//!     }
//! });
//!
//! routes.remove(id);
//! assert_eq!(domain.reclaim(), 1);
//! assert_eq!(*waiting[0], 1500);
//! ```
//!
//! # How to use it well
//! - One [`Domain`] for all tables a worker looks at; one [`Reader`] a worker; one burst a batch of packets.
//! - [`Reader::online`] when the worker starts to poll, [`Reader::offline`] before it sleeps or blocks.
//! - [`Domain::reclaim`] after a change of the tables, and every few thousand steps of a large one.
//! - A structure of one's own retires through a [`DomainRef`] and checks its guards with it.
//!
//! The memory orderings are argued in `domain.rs` and checked under loom (`tests/loom.rs`).

mod cell;
mod domain;
mod domain_ref;
mod rcu;
mod reader;
mod reference;
mod slots;
mod sync;

pub use domain::Domain;
pub use domain_ref::DomainRef;
pub use rcu::Rcu;
pub use reader::{Guard, Reader};
pub use reference::Ref;
pub use slots::Slots;
