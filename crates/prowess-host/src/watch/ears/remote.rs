//! Is this folder on another machine, whose changes our system is not told of?

use std::path::Path;

/// Kinds of file systems that others write to unseen: NFS, SMB in three versions, 9P, FUSE, AFS, Coda, Ceph.
#[cfg(target_os = "linux")]
const REMOTE: [u64; 9] =
    [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x6573_5546, 0x5346_414f, 0x7375_7245, 0x00c3_6400];

/// Whether watching `dir` would miss what others do to it.
#[cfg(target_os = "linux")]
pub(crate) fn is_remote(dir: &Path) -> bool {
    // Some systems keep the number as a signed 32-bit one; only these bits mean something.
    rustix::fs::statfs(dir).is_ok_and(|facts| {
        let kind = u64::try_from(i128::from(facts.f_type) & 0xffff_ffff).unwrap_or_default();
        REMOTE.contains(&kind)
    })
}

/// Whether watching `dir` would miss what others do to it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_remote(_: &Path) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_makes_up_is_here() {
        assert!(!is_remote(Path::new("/proc")));
        assert!(!is_remote(Path::new("/no/such/place")));
    }
}
