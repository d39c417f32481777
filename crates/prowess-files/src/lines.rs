//! Files of lines: how is one appended, by several programs and within bounds, and did a crash tear the last one?

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Lock, create_private_dir};

/// How long to wait for another process that appends a line.
const PATIENCE: Duration = Duration::from_secs(5);

/// When a line that was appended survives a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before the call returns.
    Synced,
    /// When the system writes it.
    Buffered,
}

/// A file of lines that only its owner can read. When it is full, it is put aside, and one old file is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineLog {
    path: PathBuf,
    max_bytes: u64,
    durability: Durability,
}

impl LineLog {
    /// The log at `path`, which is put aside once it has more than `max_bytes`.
    #[must_use]
    pub fn new(path: PathBuf, max_bytes: u64, durability: Durability) -> Self {
        Self { path, max_bytes, durability }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the file is that was put aside last.
    #[must_use]
    pub fn old_path(&self) -> PathBuf {
        self.beside("old")
    }

    /// What it holds: its own text, and that of the file that was put aside last. A file that is not there is empty.
    pub fn read(&self) -> io::Result<[String; 2]> {
        let text = |path: &Path| {
            let file = match File::open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
                Err(error) => return Err(error),
            };
            let mut bytes = Vec::new();
            // The last line may go beyond the limit.
            file.take(self.max_bytes.saturating_mul(2)).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok([text(&self.path)?, text(&self.old_path())?])
    }

    /// Appends `line`. Threads and processes wait for each other. A line that a crash or a full disk tore is closed off.
    pub fn append(&self, line: &str) -> io::Result<()> {
        self.append_all(&[line])
    }

    /// Appends `lines` in one write.
    pub fn append_all(&self, lines: &[impl AsRef<str>]) -> io::Result<()> {
        if let Some(dir) = self.path.parent() {
            create_private_dir(dir)?;
        }
        let _lock = Lock::acquire(&self.lock_path(), PATIENCE).map_err(io::Error::other)?;
        let mut file = self.open()?;
        if file.metadata()?.len() > self.max_bytes {
            std::fs::rename(&self.path, self.old_path())?;
            file = self.open()?;
        }
        let start = if is_torn(&mut file)? { "\n" } else { "" };
        let lines = lines.iter().flat_map(|line| [line.as_ref(), "\n"]);
        file.write_all(std::iter::once(start).chain(lines).collect::<String>().as_bytes())?;
        match self.durability {
            Durability::Synced => file.sync_data(),
            Durability::Buffered => Ok(()),
        }
    }

    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).read(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.path)
    }

    fn lock_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        name.into()
    }

    /// `log.jsonl` with `word` is `log.word.jsonl`.
    fn beside(&self, word: &str) -> PathBuf {
        let extension = self.path.extension().map_or_else(
            || word.into(),
            |own| {
                let mut extension = std::ffi::OsString::from(word);
                extension.push(".");
                extension.push(own);
                extension
            },
        );
        self.path.with_extension(extension)
    }
}

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
    fn lines_are_appended_by_many_and_a_full_file_is_put_aside() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = LineLog::new(dir.path().join("audit/log.jsonl"), 1_000, Durability::Synced);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let log = log.clone();
                scope.spawn(move || (0..10).for_each(|at| log.append(&format!("{writer} {at}")).expect("written")));
            }
        });
        let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
        assert_eq!((read(log.path()).lines().count(), log.old_path().exists()), (40, false));
        std::fs::write(log.path(), "x".repeat(1_001)).expect("written");
        log.append("new").expect("written");
        assert_eq!((read(log.path()).as_str(), read(&log.old_path()).len()), ("new\n", 1_001));
        assert!(log.old_path().ends_with("audit/log.old.jsonl"));
        std::fs::write(log.path(), "to").expect("written");
        log.append("whole").expect("written");
        assert_eq!(read(log.path()), "to\nwhole\n");
        log.append_all(&["one", "two"]).expect("written");
        let [own, old] = log.read().expect("read");
        assert_eq!((own.as_str(), old.len()), ("to\nwhole\none\ntwo\n", 1_001));
        let none = LineLog::new(dir.path().join("none.jsonl"), 1_000, Durability::Buffered);
        assert_eq!(none.read().expect("read"), ["", ""]);
    }

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
