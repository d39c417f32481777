//! The log file: how does it stay small?

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that lines are added to. When it is full it is set aside, and what was aside before is gone.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    max_bytes: u64,
    file: File,
    size: u64,
}

impl LogFile {
    /// Opens it for its owner alone, and makes its folder.
    pub fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder)?;
        }
        let file = append(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), max_bytes, file, size })
    }

    /// Adds a line, in one piece.
    pub fn add(&mut self, line: &str) -> io::Result<()> {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX).saturating_add(1);
        if self.size > 0 && self.size.saturating_add(length) > self.max_bytes {
            let mut aside = self.path.clone().into_os_string();
            aside.push(".1");
            fs::rename(&self.path, aside)?;
            self.file = append(&self.path)?;
            self.size = 0;
        }
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.size += length;
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_set_aside_and_never_more_than_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("logs/gateway.log");
        let mut file = LogFile::open(&path, 20).expect("a file");
        for number in 0..10 {
            file.add(&format!("line {number}")).expect("added");
        }
        let text = fs::read_to_string(&path).expect("text");
        assert_eq!(text, "line 8\nline 9\n");
        let names: Vec<_> = fs::read_dir(dir.path().join("logs")).expect("a folder").collect();
        assert_eq!(names.len(), 2);
        // Opened again, it goes on.
        let mut file = LogFile::open(&path, 1000).expect("a file");
        file.add("more").expect("added");
        assert!(fs::read_to_string(&path).expect("text").ends_with("line 9\nmore\n"));
    }

    #[cfg(unix)]
    #[test]
    fn it_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("logs/gateway.log");
        LogFile::open(&path, 20).expect("a file");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    }
}
