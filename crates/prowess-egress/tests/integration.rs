//! All integration tests of this crate, in one program: most of what building them costs is linking.

mod crowd;
mod egress;
