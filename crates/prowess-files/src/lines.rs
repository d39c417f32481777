//! Files of lines: did a crash tear the last one?

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Whether `file` ends in the middle of a line, because a program was killed or the disk was full. The file has to be
/// readable; its position changes.
pub fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_without_an_end_is_torn() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        for (text, torn) in [("", false), ("a\n", false), ("a\nb", true), ("\n", false), ("a", true)] {
            std::fs::write(&path, text).expect("written");
            assert_eq!(is_torn(&mut File::open(&path).expect("a file")).expect("read"), torn, "{text:?}");
        }
    }
}
