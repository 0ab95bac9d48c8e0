//! Why something is left to the kernel.

/// Why something that the kernel has is not in the tables as it is there. Packets that it is for are left to the kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Reason {
    /// An attribute that cannot be what the kernel means.
    #[error("its {0} cannot be read")]
    Malformed(&'static str),
    /// An attribute that this noref does not know.
    #[error("{0} has an attribute of unknown type {1}")]
    Attribute(&'static str, u16),
    /// A kind of lightweight tunnel.
    #[error("encap {0} is not implemented")]
    Encap(&'static str),
    /// A mode of seg6.
    #[error("encap seg6 of mode {0} is not implemented")]
    Seg6Mode(u32),
    /// Flavours of a SID.
    #[error("flavors {0:#x} are not all implemented")]
    Flavors(u32),
    /// An action of seg6local.
    #[error("the seg6local action {0} is not implemented")]
    Action(u32),
    /// A SID or policy that noref refuses.
    #[error("{0}")]
    Refused(String),
    /// A SID after which packets leave by a device of the kernel: they must be left to it as they came.
    #[error("its packets go on by a device that is no port of noref")]
    Elsewhere,
    /// A type of route.
    #[error("routes of type {0} are not implemented")]
    RouteType(u8),
    /// A nexthop object.
    #[error("its nexthop object is not supported: {0}")]
    Nexthop(&'static str),
    /// Groups within groups without end.
    #[error("its nexthop object cannot be resolved")]
    NexthopUnresolved,
    /// A selector of a rule.
    #[error("rules that select by {0} are not implemented")]
    Selector(&'static str),
    /// A rule by mark.
    #[error("marks are set by the kernel's packet filter, which noref does not see")]
    Mark,
    /// What a rule does.
    #[error("rules of action {0} are not implemented")]
    RuleAction(u8),
    /// A device as a port.
    #[error("a device of type {0} cannot be a port")]
    Device(Box<str>),
    /// A port that a bridge or bond takes the packets of.
    #[error("it belongs to {0}, which is no VRF device")]
    Master(Box<str>),
    /// A device with a number beyond what tables hold.
    #[error("its number is beyond {}", crate::mirror::MAX_IFINDEX)]
    IfIndex,
}

/// Something that is left to the kernel, as `noref show unsupported` lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported {
    /// What: `route 10.0.0.0/8 table main`, `rule 100`, `device br0`.
    pub what: String,
    /// Why.
    pub reason: Reason,
}
