//! What labs are made of: network namespaces, a router in one of them, a directory for sockets. The demo and `bench live` use them; all of it is gone with its value.

pub mod directory;
mod interrupt;
pub mod namespace;
mod router;

pub use self::interrupt::Interrupt;
pub use self::router::Router;

/// Before there are interfaces: a namespace may have inherited other settings, and addresses are to be usable at once.
pub const SETTINGS: &str = "\
sysctl -w net.ipv4.conf.all.rp_filter=0
sysctl -w net.ipv4.conf.default.rp_filter=0
sysctl -w net.ipv6.conf.all.disable_ipv6=0
sysctl -w net.ipv6.conf.default.disable_ipv6=0
sysctl -w net.ipv6.conf.default.accept_dad=0
";
