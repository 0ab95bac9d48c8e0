//! Why a change of the configuration was refused.

use std::net::IpAddr;

use crate::TableId;

/// Why a change was refused; nothing was changed then. In brackets: what the kernel says.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// [File exists]
    #[error("the {0} exists already")]
    Exists(&'static str),
    /// [No such process, Cannot find device]
    #[error("there is no such {0}")]
    Missing(&'static str),
    /// [Nexthop has invalid gateway]
    #[error("the gateway {0} is not on a directly connected network (add the connected route or address first, or say onlink)")]
    GatewayUnreachable(IpAddr),
    /// [Nexthop device is not up]
    #[error("the device {0} is down: set it up first")]
    DeviceDown(Box<str>),
    /// [Invalid argument]
    #[error("a route of this type needs a device or a gateway")]
    NoWayOut,
    /// [Gateway can not be a local address]
    #[error("the gateway {0} is one of the router's own addresses")]
    GatewayLocal(IpAddr),
    /// [Invalid prefsrc address]
    #[error("the source {0} is not one of the router's addresses")]
    SourceNotLocal(IpAddr),
    /// [Strict mode for VRF is disabled]
    #[error("vrftable needs strict mode: set net.vrf.strict_mode=1 first")]
    VrfStrictModeOff,
    /// [Table is used by another VRF]
    #[error("table {0} is used by another VRF")]
    VrfTableUsed(TableId),
    /// [Table has no associated VRF device]
    #[error("table {0} belongs to no VRF device: add one with `ip link add NAME type vrf table {0}`")]
    VrfTableUnknown(TableId),
    /// [Invalid argument]
    #[error("{0}")]
    Invalid(&'static str),
}
