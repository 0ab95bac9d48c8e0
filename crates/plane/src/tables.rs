//! What workers share and only read.

use std::sync::Arc;

use rcu::{Rcu, Slots};
use route::Network;
use srv6::{HmacKeys, Policy, Sid};

/// Routes and interfaces, and what SRv6 routes refer to.
pub struct Tables {
    /// Interfaces, routes, rules, neighbours, settings.
    pub network: Arc<Network>,
    /// Behaviours, by [`route::SidId`].
    pub sids: Slots<Sid>,
    /// Headend policies, by [`route::PolicyId`].
    pub policies: Slots<Policy>,
    /// Keys of `ip sr hmac`.
    pub hmac_keys: Rcu<HmacKeys>,
}

impl Tables {
    /// Tables around a network, with no SID yet.
    pub fn new(network: Arc<Network>) -> Tables {
        let domain = network.domain().clone();
        Tables { network, sids: Slots::new(&domain), policies: Slots::new(&domain), hmac_keys: Rcu::new(&domain, HmacKeys::default()) }
    }
}
