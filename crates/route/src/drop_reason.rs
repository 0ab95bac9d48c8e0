//! Why a packet was not forwarded. No packet disappears without one of these names.

/// Declares the reasons: name, the word shown to the operator, and what it means.
macro_rules! drop_reasons {
    ($($name:ident $word:literal $meaning:literal,)*) => {
        /// Why a packet ended here.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum DropReason { $(#[doc = $meaning] $name,)* }

        impl DropReason {
            /// Every reason, in the order of their numbers.
            pub const ALL: &[DropReason] = &[$(DropReason::$name,)*];

            /// The reason as one word, stable: it names counters.
            pub const fn word(self) -> &'static str {
                match self { $(DropReason::$name => $word,)* }
            }

            /// The reason as a sentence for the operator.
            pub const fn meaning(self) -> &'static str {
                match self { $(DropReason::$name => $meaning,)* }
            }
        }
    };
}

drop_reasons! {
    // Ethernet
    FrameTooShort "frame_too_short" "The frame is shorter than an Ethernet header with its tags.",
    OtherHost "other_host" "The frame is addressed to another station.",
    UnknownEtherType "unknown_ethertype" "The frame carries neither IPv4, IPv6 nor ARP.",
    UnknownVlan "unknown_vlan" "The frame has a VLAN tag and no sub-interface takes it.",
    PortDown "port_down" "The port is administratively down.",
    NotUnicastFrame "not_unicast_frame" "A packet to be forwarded came in a broadcast or multicast frame.",
    // IP headers
    HeaderTruncated "header_truncated" "The packet ends within its IP header.",
    BadVersion "bad_version" "The version in the IP header is not that of the frame's type.",
    BadHeaderLength "bad_header_length" "The IPv4 header length is below 20 bytes or beyond the packet.",
    BadChecksum "bad_checksum" "The IPv4 header checksum is wrong.",
    LengthMismatch "length_mismatch" "The length in the IP header is beyond the end of the frame or too small.",
    BadHopByHop "bad_hop_by_hop" "A hop-by-hop option forbids forwarding, or the options are malformed.",
    BadOption "bad_option" "An IPv4 option is malformed.",
    SourceRouted "source_routed" "The packet carries an IPv4 source route, which is not accepted.",
    SourceRouteFailed "source_route_failed" "A strict IPv4 source route does not lead to a neighbour.",
    MartianSource "martian_source" "The source address can not be that of a packet on the wire.",
    MartianDestination "martian_destination" "The destination address can not be that of a packet on the wire.",
    OwnSource "own_source" "The source address is one of the router's own.",
    ReversePath "reverse_path" "The route back to the source does not lead through the port it came from (rp_filter).",
    Ip6Disabled "ip6_disabled" "The interface has IPv6 switched off or an MTU below 1280 bytes.",
    // Routing
    ForwardingOff "forwarding_off" "Forwarding is switched off by sysctl.",
    NoRoute "no_route" "No route leads to the destination.",
    RouteBlackhole "route_blackhole" "The route is a blackhole.",
    RouteUnreachable "route_unreachable" "The route is of type unreachable.",
    RouteProhibit "route_prohibit" "The route is of type prohibit.",
    RuleBlackhole "rule_blackhole" "The rule is of type blackhole.",
    RuleUnreachable "rule_unreachable" "The rule is of type unreachable.",
    RuleProhibit "rule_prohibit" "The rule is of type prohibit.",
    HopLimit "hop_limit" "The hop limit or TTL is used up.",
    TooBig "too_big" "The packet is bigger than the MTU of its way out and must not be fragmented.",
    BeyondScope "beyond_scope" "The source address is link-local and the way out is another link.",
    MulticastNotForwarded "multicast_not_forwarded" "Multicast is not routed.",
    BroadcastNotForwarded "broadcast_not_forwarded" "Broadcast is not routed.",
    LinkDown "link_down" "The way out leads through an interface that is down.",
    DummyDevice "dummy_device" "The way leads to a dummy device, where packets end.",
    LookupLoop "lookup_loop" "One packet asked for more route lookups than are allowed.",
    // Neighbours
    NeighbourPending "neighbour_pending" "More packets wait for this neighbour, or for all together, than may.",
    NeighbourFailed "neighbour_failed" "The neighbour does not answer.",
    BadArp "bad_arp" "The ARP packet is malformed or asks for nobody here.",
    BadNeighbourDiscovery "bad_neighbour_discovery" "The neighbour discovery message is malformed or asks for nobody here.",
    // SRv6
    Seg6Disabled "seg6_disabled" "A routing header reached a local address and seg6_enabled is off.",
    NoSrh "no_srh" "The behaviour needs an SRH with segments left and there is none.",
    BadSrh "bad_srh" "The SRH is malformed.",
    SegmentsLeft "segments_left" "A decapsulating SID was reached with segments left.",
    HmacMissing "hmac_missing" "The SRH carries no HMAC and one is required.",
    HmacInvalid "hmac_invalid" "The HMAC of the SRH is wrong or its key is unknown.",
    HmacKeyMissing "hmac_key_missing" "The policy asks for an HMAC with a key that is not set.",
    WrongPayload "wrong_payload" "The SID or policy does not take what the packet carries.",
    InnerTruncated "inner_truncated" "The encapsulated packet ends within its header.",
    SidLocal "sid_local" "The next segment is one of the router's own addresses, which this behaviour must not reach.",
    SidTable "sid_table" "The table of the behaviour does not exist.",
    SidDevice "sid_device" "The device of the behaviour does not exist, is down or of the wrong kind.",
    NoHeadroom "no_headroom" "The buffer has no room for the headers to be put in front.",
    EncapsulatedTooLong "encapsulated_too_long" "The packet with its new headers would be longer than an IPv6 length field can say.",
    NoTunnelSource "no_tunnel_source" "No source address for the outer header could be found.",
    // Local delivery
    NotForUs "not_for_us" "The packet is addressed to a group or broadcast that the router does not listen to.",
    BadUpperChecksum "bad_upper_checksum" "The checksum of the upper layer is wrong.",
    NoListener "no_listener" "Nobody listens at the port.",
    NoProtocol "no_protocol" "Nobody takes the protocol.",
    IcmpIgnored "icmp_ignored" "An ICMP message that the router has no use for.",
    BadExtensionHeader "bad_extension_header" "An extension header of a packet for the router is malformed or unknown.",
    FragmentBad "fragment_bad" "The fragment is malformed.",
    FragmentOverlap "fragment_overlap" "The fragment overlaps another of its datagram; the whole datagram is let go.",
    FragmentDuplicate "fragment_duplicate" "All of the fragment had come before.",
    FragmentLimit "fragment_limit" "Too many fragments wait to be reassembled.",
    FragmentTimeout "fragment_timeout" "The missing fragments of the datagram did not come in time.",
    NoSourceAddress "no_source_address" "The router has no address to answer from.",
    RateLimited "rate_limited" "More ICMP messages were due than the rate limit allows.",
    KernelBusy "kernel_busy" "More packets were to be left to the kernel than it is given.",
    // Configuration
    Unsupported "unsupported" "The way leads through something that noref does not implement yet.",
}

impl std::fmt::Display for DropReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}
