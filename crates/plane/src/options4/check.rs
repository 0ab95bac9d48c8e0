//! What is wrong with one option, and what a received one is filled in with.

use super::{CIPSO, END, Here, LOOSE_ROUTE, Options, RECORD_ROUTE, ROUTER_ALERT, STRICT_ROUTE, SourceRoute, TIMESTAMP};
use super::{address_at, advance, format, put};

/// Checks one option, of at least two bytes, that stands at `place`. The error is the offset of the bad byte in the option.
pub(super) fn option(option: &mut [u8], place: u8, found: &mut Options, here: &Here<'_>) -> Result<(), u8> {
    let kind = option.first().copied().unwrap_or(END);
    match kind {
        LOOSE_ROUTE | STRICT_ROUTE => {
            if *option.get(2).ok_or(1)? < 4 {
                return Err(2);
            }
            unique(found.source_route)?;
            found.source_route = Some(SourceRoute { at: place, strict: kind == STRICT_ROUTE });
        }
        RECORD_ROUTE => {
            unique(found.record_route)?;
            found.recorded = record(option, here)?;
            found.changed |= found.recorded;
            found.record_route = Some(place);
        }
        TIMESTAMP => {
            unique(found.timestamp)?;
            stamp(option, found, here)?;
            found.timestamp = Some(place);
        }
        ROUTER_ALERT => {
            let is_zero = *option.get(2..4).ok_or(1)? == [0, 0];
            found.router_alert = is_zero.then_some(place).or(found.router_alert);
        }
        CIPSO => {
            unique(found.cipso)?;
            // Known from here on: an answer carries back even a bad one.
            found.cipso = Some(place);
            check_cipso(option)?;
        }
        // Anything else goes its way unread.
        _ => {}
    }
    Ok(())
}

fn unique<T>(earlier: Option<T>) -> Result<(), u8> {
    earlier.map_or(Ok(()), |_| Err(0))
}

/// Puts this router's address into a record route. False when it is full.
fn record(option: &mut [u8], here: &Here<'_>) -> Result<bool, u8> {
    let pointer = *option.get(2).ok_or(1)?;
    if pointer < 4 {
        return Err(2);
    }
    if usize::from(pointer) > option.len() {
        return Ok(false);
    }
    put(option, pointer, (here.address)().octets()).ok_or(2)?;
    advance(option, 4);
    Ok(true)
}

/// Puts time, and where asked the address, into a time stamp option; counts the overflow when it is full.
fn stamp(option: &mut [u8], found: &mut Options, here: &Here<'_>) -> Result<(), u8> {
    let format = *option.get(3).ok_or(1)?;
    let (overflow, format) = (format >> 4, format & 15);
    let pointer = option.get(2).copied().unwrap_or(0);
    if pointer < 5 {
        return Err(2);
    }
    let left = (option.len() + 1).saturating_sub(pointer.into());
    if left == 0 {
        if format != format::PRESPECIFIED {
            if overflow == 15 {
                return Err(3);
            }
            if let Some(byte) = option.get_mut(3) {
                *byte += 0x10;
                found.changed = true;
            }
        }
        return Ok(());
    }
    if left < 4 || left < 8 && matches!(format, format::ADDRESS_AND_TIME | format::PRESPECIFIED) {
        return Err(2);
    }
    let time = here.milliseconds.to_be_bytes();
    match format {
        format::TIME => {
            put(option, pointer, time).ok_or(2)?;
            advance(option, 4);
        }
        format::ADDRESS_AND_TIME => {
            put(option, pointer, (here.address)().octets()).ok_or(2)?;
            put(option, pointer + 4, time).ok_or(2)?;
            advance(option, 8);
            found.stamped_address = true;
        }
        format::PRESPECIFIED => {
            if (here.is_elsewhere)(address_at(option, pointer).ok_or(2)?) {
                return Ok(());
            }
            put(option, pointer + 4, time).ok_or(2)?;
            advance(option, 8);
        }
        _ => return Ok(()),
    }
    found.stamped_time = true;
    found.changed = true;
    Ok(())
}

/// The tags of a CIPSO option must fill it exactly; their content is not looked at (Linux built without NetLabel).
fn check_cipso(option: &[u8]) -> Result<(), u8> {
    let Some(doi) = option.get(2..6).filter(|_| option.len() >= 8) else { return Err(1) };
    if doi == [0; 4] {
        return Err(2);
    }
    let mut at = 6;
    while at < option.len() {
        let tag_len = usize::from(*option.get(at + 1).ok_or(at as u8)?);
        if tag_len == 0 || tag_len > option.len() - at {
            return Err(at as u8 + 1);
        }
        at += tag_len;
    }
    Ok(())
}
