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

/// Whether the time stamp counter goes on at one rate in every state of the processor ("invariant TSC": CPUID leaf 8000_0007h, EDX bit 8), so that clocks of it are
/// time.
pub fn clocks_are_steady() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        const LEAF: u32 = 0x8000_0007;
        use std::arch::x86_64::__cpuid;
        // The first leaf of the extended ones tells the last of them.
        __cpuid(LEAF & 1 << 31).eax >= LEAF && __cpuid(LEAF).edx & 1 << 8 != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
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

    #[test]
    fn the_clock_is_steady_where_the_kernel_says_so() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        // The kernel may know better of single processors that do not say it.
        assert!(!clocks_are_steady() || flags.split_whitespace().any(|flag| flag == "nonstop_tsc"), "{flags}");
    }
}
