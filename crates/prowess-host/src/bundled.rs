//! The bundled skills: inside the program, and laid out on disk so that a model can read them.
//!
//! The folder is named after a digest of its content. So another version of the program never changes what a running
//! session was told to read, and a folder that was tampered with is noticed and replaced.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

static SKILLS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../skills");

/// The folder below the state directory.
const FOLDER: &str = "bundled-skills";

/// Lays the skills out below `state` and returns their folder. Nothing is written when they are there already.
pub(crate) fn lay_out(state: &Path) -> io::Result<PathBuf> {
    let files = files(&SKILLS);
    let parent = state.join(FOLDER);
    let folder = parent.join(digest(&files));
    if is_intact(&folder, &files) {
        return Ok(folder);
    }
    fs::create_dir_all(&parent)?;
    let draft = parent.join(format!(".draft-{}", std::process::id()));
    if let Err(error) = write(&draft, &files) {
        // The first failure is the one worth telling.
        let _ = fs::remove_dir_all(&draft);
        return Err(error);
    }
    if let Err(error) = fs::rename(&draft, &folder) {
        // The folder is there: damaged, or made by another process this very moment.
        let spoilt = parent.join(format!(".spoilt-{}", std::process::id()));
        let moved = !is_intact(&folder, &files) && fs::rename(&folder, &spoilt).is_ok();
        let done = if moved { fs::rename(&draft, &folder) } else { Err(error) };
        for leftover in [&draft, &spoilt] {
            if leftover.exists() {
                fs::remove_dir_all(leftover)?;
            }
        }
        if !is_intact(&folder, &files) {
            done?;
        }
    }
    Ok(folder)
}

fn files(dir: &'static Dir<'static>) -> Vec<(&'static Path, &'static [u8])> {
    let own = dir.files().map(|file| (file.path(), file.contents()));
    let mut all: Vec<_> = own.chain(dir.dirs().flat_map(files)).collect();
    all.sort();
    all
}

fn digest(files: &[(&Path, &[u8])]) -> String {
    let mut hasher = blake3::Hasher::new();
    for (path, content) in files {
        for part in [path.to_string_lossy().as_bytes(), content] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// Whether the folder holds these files and no others.
fn is_intact(folder: &Path, files: &[(&Path, &[u8])]) -> bool {
    let same = |(path, content): &(&Path, &[u8])| fs::read(folder.join(path)).is_ok_and(|found| found == *content);
    entries(folder).is_ok_and(|found| found == files.len()) && files.iter().all(same)
}

/// How many things that are not folders lie below a folder.
fn entries(folder: &Path) -> io::Result<usize> {
    let mut found = 0;
    for entry in folder.read_dir()? {
        let entry = entry?;
        found += if entry.file_type()?.is_dir() { entries(&entry.path())? } else { 1 };
    }
    Ok(found)
}

fn write(folder: &Path, files: &[(&Path, &[u8])]) -> io::Result<()> {
    for (path, content) in files {
        let file = folder.join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&file, content)?;
        if content.starts_with(b"#!") {
            make_executable(&file)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laid_out_once_and_mended_when_spoilt() {
        let state = std::env::temp_dir().join(format!("prowess-bundled-{}", std::process::id()));
        let folder = lay_out(&state).expect("laid out");
        let file = folder.join("weather/SKILL.md");
        let made = fs::metadata(&file).and_then(|metadata| metadata.modified()).expect("a file");
        assert_eq!(lay_out(&state).expect("again"), folder);
        assert_eq!(fs::metadata(&file).and_then(|metadata| metadata.modified()).expect("a file"), made);
        fs::write(&file, "changed").expect("written");
        assert_eq!(lay_out(&state).expect("mended"), folder);
        assert!(fs::read_to_string(&file).expect("a file").contains("name: weather"));
        fs::create_dir(folder.join("planted")).expect("a folder");
        fs::write(folder.join("planted/SKILL.md"), "---\ndescription: d\n---\n").expect("written");
        assert_eq!(lay_out(&state).expect("mended"), folder);
        assert!(!folder.join("planted").exists());
        assert_eq!(fs::read_dir(state.join(FOLDER)).expect("a folder").count(), 1);
        fs::remove_dir_all(state).expect("removed");
    }
}
