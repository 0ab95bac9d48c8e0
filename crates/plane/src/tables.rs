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
    /// They are those of a kernel, which has the same packets to care for: what is for the host is left to it, it knows the neighbours, and it forwards
    /// what workers do not.
    pub beside_kernel: bool,
}

impl Tables {
    /// Tables around a network, with no SID yet.
    pub fn new(network: Arc<Network>) -> Tables {
        let domain = network.domain().clone();
        let (sids, policies, hmac_keys) = (Slots::new(&domain), Slots::new(&domain), Rcu::new(&domain, HmacKeys::default()));
        Tables { network, sids, policies, hmac_keys, beside_kernel: false }
    }

    /// As [`Tables::new`], for a router beside a kernel.
    pub fn beside_kernel(network: Arc<Network>) -> Tables {
        Tables { beside_kernel: true, ..Tables::new(network) }
    }
}
