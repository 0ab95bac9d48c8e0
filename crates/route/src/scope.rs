//! Scope numbers of addresses and IPv4 routes, as in `ip address` and `ip route` (Linux `rt_scope_t`).

/// `global`: what is reached through gateways.
pub const SCOPE_UNIVERSE: u8 = 0;
/// `link`: what is on the link.
pub const SCOPE_LINK: u8 = 253;
/// `host`: the router's own addresses.
pub const SCOPE_HOST: u8 = 254;
