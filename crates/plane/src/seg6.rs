//! SRv6 in the packet's way: behaviours of the SIDs that routes lead to, and headends.

use std::net::Ipv6Addr;

use route::{DropReason, IfIndex, PolicyId, SidId};
use srv6::{Env, FlowLabel, Inner, Next};
use wire::ipv6;

use crate::context::Context;
use crate::packet::{Packet, Version};
use crate::trace::Ledger;
use crate::{describe, flow_hash};

/// What a behaviour may know of the router, for a packet that came in by `packet.iif`.
pub(crate) fn env<'a>(cx: &'a Context<'_, '_>, packet: &Packet, tunsrc: Ipv6Addr) -> Env<'a> {
    let require_hmac = cx.links.get(packet.dev).map_or(0, |link| link.conf6.seg6_require_hmac);
    Env {
        hmac_keys: cx.hmac_keys,
        require_hmac,
        flow_label: FlowLabel::from_sysctl(cx.settings.seg6_flowlabel.into()),
        flow_hash: flow_hash::label,
        tunsrc,
        l2_len: packet.l2_len.into(),
    }
}

/// The packet reached a SID.
pub(crate) fn behavior(cx: &Context<'_, '_>, packet: &mut Packet, id: SidId, ledger: &mut Ledger) -> Result<Next, DropReason> {
    let sid = cx.tables.sids.get(cx.guard, id.0).ok_or(DropReason::SidDevice)?;
    let bytes = packet.buf.len();
    let tunsrc = cx.settings.seg6_tunsrc;
    let before = ledger.is_tracing().then(|| describe::ip6(&packet.buf));
    let env = env(cx, packet, tunsrc);
    let next = sid.input(&mut packet.buf, &env);
    // The Ethernet header stood before a header that may be gone.
    packet.l2_len = 0;
    let count = ledger.counters.sid_mut(id);
    match &next {
        Ok(next) => {
            if let Next::Route4(_) = next {
                packet.version = Version::V4;
            }
            count.processed.add(bytes);
            trace(cx, packet, sid.descriptor().name, before, next, ledger);
        }
        Err(reason) => {
            count.errors += 1;
            ledger.step(packet, "seg6", || format!("{}: refused: {}", sid.descriptor().name, reason.meaning()));
        }
    }
    next
}

fn trace(cx: &Context<'_, '_>, packet: &Packet, name: &str, before: Option<String>, next: &Next, ledger: &mut Ledger) {
    ledger.step(packet, "seg6", || {
        let before = before.unwrap_or_default();
        match next {
            Next::Route6(lookup) => {
                let mut wish = String::new();
                lookup.nexthop.inspect(|nexthop| wish.push_str(&format!(", to nexthop {nexthop}")));
                lookup.table.inspect(|table| wish.push_str(&format!(", in table {table}")));
                lookup.vrf.inspect(|table| wish.push_str(&format!(", in the VRF of table {table}")));
                format!("{name}: {before} → {}{wish}", describe::ip6(&packet.buf))
            }
            Next::Route4(lookup) => {
                let mut wish = String::new();
                lookup.nexthop.inspect(|nexthop| wish.push_str(&format!(", to nexthop {nexthop}")));
                lookup.vrf.inspect(|table| wish.push_str(&format!(", in the VRF of table {table}")));
                format!("{name}: {before} → {}{wish}", describe::ip4(&packet.buf))
            }
            Next::Frame { port } => format!("{name}: {before} → Ethernet frame of {} bytes, out by {}", packet.buf.len(), cx.name(*port)),
        }
    });
}

/// The packet's route leads into an SRv6 policy: `dev` is the route's device.
pub(crate) fn headend(
    cx: &Context<'_, '_>,
    packet: &mut Packet,
    id: PolicyId,
    inner: Inner,
    dev: IfIndex,
    ledger: &mut Ledger,
) -> Result<(), DropReason> {
    let policy = cx.tables.policies.get(cx.guard, id.0).ok_or(DropReason::NoTunnelSource)?;
    let global = cx.settings.seg6_tunsrc;
    let source = match policy.tunsrc() {
        Some(source) => source,
        None if !global.is_unspecified() => global,
        None => cx.links.source6(dev, policy.first_segment()).ok_or(DropReason::NoTunnelSource)?,
    };
    let env = env(cx, packet, source);
    if policy.overhead() > packet.buf.headroom() {
        // A list of dozens of segments: the one case in which a packet moves to another buffer.
        packet.buf.reserve_front(policy.overhead() + wire::eth::LEN);
    }
    policy.apply(&mut packet.buf, inner, source, &env)?;
    packet.l2_len = 0;
    packet.options = None;
    packet.version = Version::V6;
    ledger.step(packet, "seg6", || format!("{}: now {}", *policy, describe::ip6(&packet.buf)));
    debug_assert!(ipv6::Header::read(&packet.buf).is_some());
    Ok(())
}
