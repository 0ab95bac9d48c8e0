//! Packet buffers, and ports that receive and send them.
#![forbid(unsafe_code)]

mod buf;

pub use buf::{Buf, HEADROOM, Pool};
