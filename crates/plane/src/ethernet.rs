//! Input of an Ethernet frame: whose it is and what it carries.

use port::Buf;
use route::{DropReason, Link, VLAN_NUMBER, VlanTag};
use wire::{EtherType, eth};

use crate::context::Context;
use crate::packet::{Addressed, Packet};
use crate::trace::Ledger;
use crate::verdict::Verdict;
use crate::{ip4_input, ip6_input};

/// Bytes of a VLAN tag.
const TAG: usize = 4;

/// Looks at a received frame. Afterwards the packet starts with what the frame carried, and is on the VLAN sub-interface that it is tagged for.
pub(crate) fn input<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, ledger: &mut Ledger) -> Verdict<'g> {
    let Some(mut link) = cx.links.get(packet.iif).filter(|link| link.up) else { return Verdict::Drop(DropReason::PortDown) };
    let Some(header) = eth::Header::read(&packet.buf) else { return Verdict::Drop(DropReason::FrameTooShort) };
    packet.addressed = match header.dst {
        dst if dst == link.mac => Addressed::Host,
        dst if dst.is_group() => Addressed::Group,
        _ => Addressed::Other,
    };
    let (to, mut ethertype, mut tags) = (header.dst, header.ethertype(), 0);
    while let protocol @ (EtherType::VLAN | EtherType::QINQ) = ethertype {
        let Some((control, inner)) = tag(&packet.buf, eth::LEN + tags) else { return Verdict::Drop(DropReason::FrameTooShort) };
        let id = control & VLAN_NUMBER;
        ethertype = inner;
        tags += TAG;
        match cx.links.vlan(VlanTag { parent: link.index, protocol: protocol.0, id }) {
            Some(vlan) if !vlan.up => return Verdict::Drop(DropReason::PortDown),
            Some(vlan) => {
                // Linux takes a frame for the sub-interface's own address as well as one for the port's.
                if packet.addressed == Addressed::Other && to == vlan.mac {
                    packet.addressed = Addressed::Host;
                }
                (packet.iif, packet.dev, packet.priority) = (vlan.index, vlan.index, vlan.vlan.priority(control));
                ledger.counters.link_mut(vlan.index).received.add(packet.buf.len() - tags);
                ledger.step(packet, "vlan", || format!("on {}", vlan.name));
                link = vlan;
            }
            // VID 0 carries a priority only: the frame belongs to the interface itself (IEEE 802.1Q §9.6), however many such tags it has.
            None if id == 0 => {}
            None => return Verdict::Drop(DropReason::UnknownVlan),
        }
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

/// Control information of the tag that stands at `at`, and the EtherType behind it.
fn tag(frame: &[u8], at: usize) -> Option<(u16, EtherType)> {
    let tag: [u8; TAG] = frame.get(at..at + TAG)?.try_into().ok()?;
    let [a, b, c, d] = tag;
    Some((u16::from_be_bytes([a, b]), EtherType(u16::from_be_bytes([c, d]))))
}

/// Puts tags into the frame in `buf`, the innermost first. False when there is no room.
pub(crate) fn put_tags(buf: &mut Buf, tags: &[(u16, u16)]) -> bool {
    tags.iter().all(|(protocol, control)| {
        let fits = buf.insert(eth::LEN - 2, TAG);
        if fits {
            buf[eth::LEN - 2..eth::LEN].copy_from_slice(&protocol.to_be_bytes());
            buf[eth::LEN..eth::LEN + 2].copy_from_slice(&control.to_be_bytes());
        }
        fits
    })
}

/// One line on a frame, for traces: whole headers, from the bytes as received.
pub(crate) fn describe(frame: &[u8], link: Option<&Link>) -> String {
    let name = link.map_or("?", |link| &link.name);
    let Some(header) = eth::Header::read(frame) else { return format!("{name}: {} bytes, no Ethernet frame", frame.len()) };
    let payload = frame.get(eth::LEN..).unwrap_or_default();
    format!("{name}: {} bytes, {} to {}, {}", frame.len(), header.src, header.dst, crate::describe::payload(header.ethertype(), payload))
}
