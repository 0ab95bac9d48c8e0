//! SRv6 in the packet's way: behaviours of the SIDs that routes lead to, and headends.

use std::net::Ipv6Addr;

use port::Buf;
use route::{DropReason, IfIndex, PolicyId, SidId, TableId};
use srv6::{Env, Inner, Next, Policy, Sid};
use wire::ipv6;

use crate::context::Context;
use crate::describe;
use crate::options4::{self, Options};
use crate::packet::{Packet, Version};
use crate::trace::Ledger;

/// What a behaviour may know of the router, for a packet that is on `packet.dev`.
#[inline]
pub(crate) fn env<'g>(cx: &Context<'_, 'g>, packet: &Packet, tunsrc: Ipv6Addr) -> Env<'g> {
    let require_hmac = cx.links.get(packet.dev).map_or(0, |link| link.conf6.seg6_require_hmac);
    Env { require_hmac, tunsrc, l2_len: packet.l2_len.into(), ..cx.env }
}

/// The packet reached a SID.
#[inline(always)]
pub(crate) fn behavior(cx: &Context<'_, '_>, packet: &mut Packet, id: SidId, ledger: &mut Ledger) -> Result<Next, DropReason> {
    let sid = cx.tables.sids.get(cx.guard, id.0).ok_or(DropReason::SidDevice)?;
    if ledger.is_tracing() {
        return traced(cx, packet, id, &sid, ledger);
    }
    process(cx, packet, id, &sid, ledger)
}

#[inline(always)]
fn process(cx: &Context<'_, '_>, packet: &mut Packet, id: SidId, sid: &Sid, ledger: &mut Ledger) -> Result<Next, DropReason> {
    let bytes = packet.buf.len();
    let env = env(cx, packet, cx.env.tunsrc);
    let next = sid.input(&mut packet.buf, &env);
    // The Ethernet header stood before a header that may be gone.
    packet.l2_len = 0;
    let count = ledger.counters.sid_mut(id);
    match &next {
        Ok(next) => {
            if let Next::Route4(_) = next {
                packet.version = Version::V4;
                // Linux looks at options where a packet comes in from a link, and this one came in as IPv6.
                packet.options = Some(Options::default());
            }
            count.processed.add(bytes);
        }
        Err(_) => count.errors += 1,
    }
    next
}

#[cold]
fn traced(cx: &Context<'_, '_>, packet: &mut Packet, id: SidId, sid: &Sid, ledger: &mut Ledger) -> Result<Next, DropReason> {
    let before = describe::ip6(&packet.buf);
    let next = process(cx, packet, id, sid, ledger);
    let name = sid.descriptor().name;
    match &next {
        Ok(next) => trace(cx, packet, name, &before, next, ledger),
        Err(reason) => ledger.step(packet, "seg6", || format!("{name}: refused: {}", reason.meaning())),
    }
    next
}

fn trace(cx: &Context<'_, '_>, packet: &Packet, name: &str, before: &str, next: &Next, ledger: &mut Ledger) {
    ledger.step(packet, "seg6", || match next {
        Next::Onward => format!("{name}: {before} → {}", describe::ip6(&packet.buf)),
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
    });
}

/// The packet's route leads into an SRv6 policy: `dev` is the route's device. Gives the table that the first segment is looked up in, if the policy names one.
pub(crate) fn headend(
    cx: &Context<'_, '_>,
    packet: &mut Packet,
    id: PolicyId,
    inner: Inner,
    dev: IfIndex,
    ledger: &mut Ledger,
) -> Result<Option<TableId>, DropReason> {
    let policy = cx.tables.policies.borrow(cx.guard, id.0).ok_or(DropReason::NoTunnelSource)?;
    let source = source(cx, policy, dev)?;
    let env = env(cx, packet, source);
    if let Some(mut options) = packet.options.take() {
        options4::seal(&mut packet.buf, &mut options);
    }
    put_on(policy, source, &mut packet.buf, inner, &env)?;
    packet.l2_len = 0;
    packet.version = Version::V6;
    ledger.step(packet, "seg6", || format!("{policy}: now {}", describe::ip6(&packet.buf)));
    debug_assert!(ipv6::Header::read(&packet.buf).is_some());
    Ok(policy.table())
}

/// The source of a policy's outer headers: its own, else the router's, else an address of the route's device.
///
/// # Errors
/// When there is none.
pub(crate) fn source(cx: &Context<'_, '_>, policy: &Policy, dev: IfIndex) -> Result<Ipv6Addr, DropReason> {
    let global = cx.env.tunsrc;
    match policy.tunsrc() {
        Some(source) => Ok(source),
        None if !global.is_unspecified() => Ok(global),
        None => cx.links.source6(dev, policy.first_segment()).ok_or(DropReason::NoTunnelSource),
    }
}

/// Puts a policy's headers on a packet.
///
/// # Errors
/// The reason why the packet ends here.
#[inline]
pub(crate) fn put_on(policy: &Policy, source: Ipv6Addr, buf: &mut Buf, inner: Inner, env: &Env<'_>) -> Result<(), DropReason> {
    if policy.overhead() > buf.headroom() {
        // A list of dozens of segments: the one case in which a packet moves to another buffer.
        buf.reserve_front(policy.overhead() + wire::eth::LEN);
    }
    policy.apply(buf, inner, source, env)
}
