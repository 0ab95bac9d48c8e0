//! Input of an Ethernet frame: whose it is and what it carries.

use route::{DropReason, Link};
use wire::{EtherType, eth};

use crate::context::Context;
use crate::packet::{Addressed, Packet};
use crate::trace::Ledger;
use crate::verdict::Verdict;
use crate::{ip4_input, ip6_input};

/// Bytes of a VLAN tag.
const TAG: usize = 4;

/// Looks at a received frame. Afterwards the packet starts with what the frame carried.
pub(crate) fn input<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, ledger: &mut Ledger) -> Verdict<'g> {
    let Some(link) = cx.links.get(packet.iif).filter(|link| link.up) else { return Verdict::Drop(DropReason::PortDown) };
    let Some(header) = eth::Header::read(&packet.buf) else { return Verdict::Drop(DropReason::FrameTooShort) };
    packet.addressed = match header.dst {
        dst if dst == link.mac => Addressed::Host,
        dst if dst.is_group() => Addressed::Group,
        _ => Addressed::Other,
    };
    let mut ethertype = header.ethertype();
    // VID 0 carries a priority only: the frame belongs to the port itself (IEEE 802.1Q §9.6), however many such tags it has.
    let mut tags = 0;
    while matches!(ethertype, EtherType::VLAN | EtherType::QINQ) {
        let Some(inner) = priority_tag(&packet.buf, eth::LEN + tags) else { return Verdict::Drop(DropReason::UnknownVlan) };
        ethertype = inner;
        tags += TAG;
    }
    if tags > 0 && !packet.buf.remove(eth::LEN - 2, tags) {
        return Verdict::Drop(DropReason::FrameTooShort);
    }
    packet.buf.trim_front(eth::LEN);
    packet.l2_len = eth::LEN as u8;
    match ethertype {
        EtherType::IPV6 => ip6_input::input(cx, link, packet, ledger),
        EtherType::IPV4 => ip4_input::input(cx, packet),
        EtherType::ARP if packet.addressed == Addressed::Other => Verdict::Drop(DropReason::OtherHost),
        EtherType::ARP => Verdict::Arp,
        _ => Verdict::Drop(DropReason::UnknownEtherType),
    }
}

/// The EtherType behind a tag of VID 0 that stands at `at`.
fn priority_tag(frame: &[u8], at: usize) -> Option<EtherType> {
    let tag: [u8; TAG] = frame.get(at..at + TAG)?.try_into().ok()?;
    let [a, b, c, d] = tag;
    (u16::from_be_bytes([a, b]) & 0xfff == 0).then_some(EtherType(u16::from_be_bytes([c, d])))
}

/// One line on a frame, for traces: whole headers, from the bytes as received.
pub(crate) fn describe(frame: &[u8], link: Option<&Link>) -> String {
    let name = link.map_or("?", |link| &link.name);
    let Some(header) = eth::Header::read(frame) else { return format!("{name}: {} bytes, no Ethernet frame", frame.len()) };
    let payload = frame.get(eth::LEN..).unwrap_or_default();
    format!("{name}: {} bytes, {} to {}, {}", frame.len(), header.src, header.dst, crate::describe::payload(header.ethertype(), payload))
}
