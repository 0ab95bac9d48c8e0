//! Several captures as one stream in the order of time.

use super::{CaptureError, Reader};
use crate::{Pool, Received, Time};

struct Input {
    reader: Reader,
    next: Option<Received>,
}

/// Captures merged by time. Packets of the same time come in the order of their captures; within a capture the order stays as it is, even when its
/// times go back.
pub struct Merge {
    inputs: Vec<Input>,
    broken: Vec<CaptureError>,
}

impl Merge {
    /// Begins with the first packet of each capture.
    ///
    /// # Errors
    /// When a capture turns out to be one that can not be read at all ([`super::Cause::is_refusal`]): a pcapng file names its link type only here.
    pub fn new(readers: Vec<Reader>, pool: &mut Pool) -> Result<Merge, CaptureError> {
        let mut merge = Merge { inputs: Vec::with_capacity(readers.len()), broken: Vec::new() };
        for mut reader in readers {
            let next = match reader.next(pool) {
                Ok(next) => next,
                Err(error) if error.cause.is_refusal() => return Err(error),
                Err(error) => {
                    merge.broken.push(error);
                    None
                }
            };
            merge.inputs.push(Input { reader, next });
        }
        Ok(merge)
    }

    /// The number of the capture that the next packet is from, and the packet; None when all have ended.
    pub fn next(&mut self, pool: &mut Pool) -> Option<(usize, Received)> {
        let (_, first) = self.first()?;
        let input = self.inputs.get_mut(first)?;
        let following = input.reader.next(pool).unwrap_or_else(|error| {
            self.broken.push(error);
            None
        });
        let packet = std::mem::replace(&mut input.next, following)?;
        Some((first, packet))
    }

    /// When the next packet came.
    pub fn next_time(&self) -> Option<Time> {
        Some(self.first()?.0)
    }

    /// Time of the next packet, and the number of its capture.
    fn first(&self) -> Option<(Time, usize)> {
        self.inputs.iter().enumerate().filter_map(|(i, input)| Some((input.next.as_ref()?.time, i))).min()
    }

    /// The captures that broke off so far, with the place and the reason.
    pub fn broken(&self) -> &[CaptureError] {
        &self.broken
    }

    /// Bytes of all captures read so far.
    pub fn offset(&self) -> u64 {
        self.inputs.iter().map(|input| input.reader.offset()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::capture;
    use super::*;

    /// Capture and first byte of each packet in the order merged, and the messages of captures that broke off.
    type Merged = (Vec<(usize, u8)>, Vec<String>);

    fn merge(captures: Vec<Vec<u8>>) -> Result<Merged, CaptureError> {
        let mut pool = Pool::default();
        let open = |(i, bytes)| Reader::new(&format!("input {i}"), Box::new(std::io::Cursor::new(bytes)));
        let readers = captures.into_iter().enumerate().map(open).collect::<Result<_, _>>()?;
        let mut merge = Merge::new(readers, &mut pool)?;
        let mut order = Vec::new();
        while let Some((input, packet)) = merge.next(&mut pool) {
            order.push((input, packet.buf[0]));
        }
        Ok((order, merge.broken().iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn packets_come_by_time_and_at_the_same_time_by_the_order_of_captures() {
        let (order, broken) = merge(vec![capture(&[(1, 10), (2, 30)]), capture(&[(3, 10), (4, 20), (5, 30)]), capture(&[])]).unwrap();
        assert_eq!(order, [(0, 1), (1, 3), (1, 4), (0, 2), (1, 5)]);
        assert!(broken.is_empty());
    }

    #[test]
    fn a_capture_whose_times_go_back_keeps_its_order() {
        let (order, _) = merge(vec![capture(&[(1, 50), (2, 10)]), capture(&[(3, 20), (4, 60)])]).unwrap();
        assert_eq!(order, [(1, 3), (0, 1), (0, 2), (1, 4)]);
    }

    #[test]
    fn a_capture_that_breaks_off_does_not_end_the_others() {
        let mut short = capture(&[(1, 10), (2, 20)]);
        short.pop();
        let (order, broken) = merge(vec![short, capture(&[(3, 30)]), capture(&[(4, 5)])[..30].to_vec()]).unwrap();
        assert_eq!(order, [(0, 1), (1, 3)]);
        assert_eq!(
            broken,
            [
                "input 2: it breaks off: a record header of 16 bytes has only 6 (at byte 24, before the first packet)",
                "input 0: it breaks off: a record of 17 bytes has only 16 (at byte 41, after 1 packet)",
            ]
        );
    }
}
