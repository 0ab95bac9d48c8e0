//! Whatever the bytes, every behaviour and every headend returns.

use port::Buf;
use proptest::collection::vec;
use proptest::prelude::*;
use route::{IfIndex, TableId};
use wire::proto;

use crate::testing::*;
use crate::{ACTIONS, Attributes, Env, Flavors, Inner, Mode, Policy, SegmentList, Sid, local_address_srh};

/// Every action, with every combination of flavours that it has.
fn sids() -> Vec<Sid> {
    let segments = SegmentList { segments: vec![MIDDLE, LAST], hmac: 0 };
    let signed = SegmentList { hmac: 42, ..segments.clone() };
    let attributes = Attributes {
        nh4: Some([10, 0, 3, 2].into()),
        nh6: Some(OTHER),
        oif: Some(IfIndex(4)),
        vrftable: Some(TableId(10)),
        srh: Some(segments),
        ..Attributes::default()
    };
    let flavors = [Flavors::NONE, Flavors::PSP, Flavors::NEXT_CSID, Flavors::PSP.union(Flavors::NEXT_CSID)];
    let variants = flavors
        .into_iter()
        .map(|flavors| Attributes { flavors, ..attributes.clone() })
        .chain([
            Attributes { vrftable: None, table: Some(TableId(10)), ..attributes.clone() },
            Attributes { srh: Some(signed), ..attributes.clone() },
        ])
        .collect::<Vec<_>>();
    ACTIONS.iter().flat_map(|action| variants.iter().filter_map(|attributes| Sid::build(action, attributes).ok())).collect()
}

fn policies() -> Vec<Policy> {
    let lists = [(1, 0), (3, 0), (1, 42)].map(|(count, hmac)| SegmentList { segments: vec![LAST; count], hmac });
    Mode::ALL.into_iter().flat_map(|mode| lists.iter().filter_map(move |list| Policy::build(mode, list, None).ok())).collect()
}

fn all_return(bytes: &[u8]) {
    for require_hmac in [-1, 0, 1] {
        let env = Env { require_hmac, l2_len: 14, ..env() };
        for sid in sids() {
            let _ = sid.input(&mut Buf::from_bytes(bytes), &env);
        }
        for policy in policies() {
            for inner in [Inner::V4, Inner::V6] {
                let _ = policy.apply(&mut Buf::from_bytes(bytes), inner, TUNSRC, &env);
            }
        }
        for offset in [0, 40, 48, bytes.len(), bytes.len() + 1] {
            let _ = local_address_srh(&mut Buf::from_bytes(bytes), offset, &env);
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_return(bytes in vec(any::<u8>(), 0..200)) {
        all_return(&bytes);
    }

    #[test]
    fn spoilt_packets_return(left in 0u8..4, number in prop::sample::select(&[4u8, 41, 143, 17, 43][..]), at in 0usize..200, to in any::<u8>(), cut in 0usize..200) {
        let inner = Packet::to(OTHER).carrying(proto::UDP, b"eight by").build();
        let mut packet = Packet::to(SID).header(proto::HOP_BY_HOP, &[0, 0, 1, 4, 0, 0, 0, 0]).srh(left, &[LAST, SID]).carrying(number, &inner).build();
        if let Some(byte) = packet.get_mut(at) {
            *byte = to;
        }
        packet.truncate(packet.len().saturating_sub(cut));
        all_return(&packet);
    }
}
