//! Memory for bytes in flight, shared by all connections of a command.
//!
//! A connection borrows a buffer only while it has bytes to move. Bulk transfers get large buffers, of which there are
//! few; everybody else gets a small one. So ten thousand connections that all stall cost ten thousand small buffers.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

const SMALL: usize = 8 * 1024;
const LARGE: usize = 512 * 1024;
/// The most large buffers in use at once.
const MOST_LARGE: usize = 16;
/// The most buffers of each size that are kept for the next connection.
const SPARE: usize = 4;

#[derive(Default)]
struct Spare {
    small: Vec<Box<[u8]>>,
    large: Vec<Box<[u8]>>,
    large_in_use: usize,
}

/// A pool of buffers.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<Spare>);

/// A borrowed buffer.
pub(crate) struct Buffer<'a> {
    bytes: Box<[u8]>,
    pool: &'a Buffers,
}

impl Buffers {
    /// A small buffer.
    pub(crate) fn small(&self) -> Buffer<'_> {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).small.pop();
        Buffer { bytes: spare.unwrap_or_else(|| vec![0; SMALL].into()), pool: self }
    }

    /// A large buffer, or nothing if too many are in use.
    pub(crate) fn large(&self) -> Option<Buffer<'_>> {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.large_in_use == MOST_LARGE {
            return None;
        }
        pool.large_in_use += 1;
        let spare = pool.large.pop();
        drop(pool);
        Some(Buffer { bytes: spare.unwrap_or_else(|| vec![0; LARGE].into()), pool: self })
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut pool = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() == LARGE {
            pool.large_in_use -= 1;
            if pool.large.len() < SPARE {
                pool.large.push(bytes);
            }
        } else if pool.small.len() < SPARE {
            pool.small.push(bytes);
        }
    }
}

impl Deref for Buffer<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
