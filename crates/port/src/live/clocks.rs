//! The processor's own clock.

/// Clocks of the processor's time stamp counter, which goes on at a steady rate whatever the processor's frequency is. None on processors without one.
#[inline]
pub fn clocks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and no memory is involved.
    return Some(unsafe { std::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_on() {
        if let (Some(before), Some(after)) = (clocks(), clocks()) {
            assert!(after >= before);
        }
    }
}
