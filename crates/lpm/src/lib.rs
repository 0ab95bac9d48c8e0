//! Longest-prefix match for IPv4 and IPv6, updated in place under readers that never lock.
//!
//! A [poptrie](https://doi.org/10.1145/2785956.2787474) (Asai and Ohara, SIGCOMM 2015): the first bits of an address index a table,
//! each further six bits a node, in which two counts of set bits tell where to go.
//!
//! ```text
//!             first 18 bits (IPv4), 20 (IPv6)          six bits                 six bits
//!
//!             direct                                   nodes                    nodes
//!           ┌────────┐                              ┌──────────┐             ┌──────────┐
//!           │ value  │   no longer prefix: done     │ children │  1 0 0 1 0… │          │
//!   key ──► │ node ──┼────────────────────────────► │ runs     │  0 0 1 0 0… │          │
//!           │ value  │                              │ bases  ──┼──┬────────► │ children │  first child + set bits
//!           └────────┘                              └──────────┘  │          │ runs     │  of `children` before the slot
//!                                                                 │          │ bases    │
//!                                                    leaves       │          └──────────┘
//!                                                   ┌───────┐     │
//!                                                   │ value │ ◄───┘  first leaf + set bits of `runs` up to the slot
//!                                                   │ value │
//!                                                   └───────┘
//! ```
//!
//! - A prefix is pushed down to the slots it covers, so nobody goes back up for a shorter one. Equal neighbours share a leaf.
//! - The arrays are flat, without pointers: a table could be mapped into another address space.
//! - The direct table grows with the trie, from a few words; an empty table answers from those.
//! - A /128 of IPv6 (an SRv6 SID, an own address) is found by a hash, before the trie. A default route is a word beside it.
//! - The writer makes the changed nodes anew beside the old, shows them by one store, and retires the old through [`rcu`].
//!
//! ```
//! use lpm::{Lpm, Prefix};
//!
//! let domain = rcu::Domain::new();
//! let table = Lpm::new(&domain);
//! table.insert(Prefix::new(0x0a00_0000_u32, 8).unwrap(), 1);
//! table.insert(Prefix::new(0x0a01_0000_u32, 16).unwrap(), 2);
//! let answers = domain.reader().burst(|guard| [0x0a01_0203, 0x0aff_0000, 0x0b00_0000].map(|key| table.lookup(guard, key)));
//! assert_eq!(answers, [2, 1, 0]);
//! ```

#![deny(unsafe_code)]

mod arena;
mod build;
mod hosts;
mod key;
mod lpm;
mod prefix;
mod rib;
mod sync;
#[allow(unsafe_code, reason = "walks without checking bounds; its head says why it may")]
mod tables;
mod writer;

pub use key::Key;
pub use lpm::{Lpm, MAX_VALUE};
pub use prefix::Prefix;
