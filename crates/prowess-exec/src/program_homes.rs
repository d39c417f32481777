//! Programs that live in a home: what else do they need from it?
//!
//! A version manager puts small programs on `PATH` that start the real ones from elsewhere in the home. What is there are
//! programs and libraries that were downloaded, so commands may read it. Logins of the same tools stay out.

use std::path::{Path, PathBuf};

/// Directories of programs, and what they need, both seen from the home.
const HOMES: &[(&str, &[&str])] = &[
    (".cargo/bin", &[".rustup", ".cargo/registry", ".cargo/git"]),
    (".local/bin", &[".local/share/uv/tools", ".local/share/uv/python", ".local/share/pipx", ".local/pipx"]),
    (".volta/bin", &[".volta"]),
    ("anaconda3/bin", &["anaconda3"]),
    ("go/bin", &["go/pkg/mod"]),
    ("miniconda3/bin", &["miniconda3"]),
    ("miniforge3/bin", &["miniforge3"]),
];

/// The directory of the programs that `pyenv`, `rbenv`, `asdf`, `mise` and others put in the place of the real ones, which
/// are beside it.
const SHIMS: &str = "shims";

/// Where `sdkman` keeps what it installs, seen from the home.
const SDKMAN: &str = ".sdkman/candidates";

/// What the programs of these directories need from `home` besides.
pub(crate) fn program_homes(path: &[PathBuf], home: &Path) -> Vec<PathBuf> {
    let mut needed: Vec<PathBuf> = Vec::new();
    for dir in path.iter().filter(|dir| dir.is_absolute()) {
        let around = dir.parent().filter(|around| dir.ends_with(SHIMS) && !home.starts_with(around));
        let listed = HOMES.iter().filter(|(bin, _)| *dir == home.join(bin)).flat_map(|(_, needs)| *needs);
        let java = Some(home.join(SDKMAN)).filter(|candidates| dir.starts_with(candidates));
        needed.extend(around.map(Path::to_owned).into_iter().chain(java).chain(listed.map(|name| home.join(name))));
    }
    needed.dedup();
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &[&str]) -> Vec<String> {
        let path: Vec<PathBuf> = path.iter().map(PathBuf::from).collect();
        program_homes(&path, Path::new("/home/u")).iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn what_is_beside_shims_can_be_read() {
        assert_eq!(check(&["/home/u/.pyenv/shims", "/usr/bin"]), ["/home/u/.pyenv"]);
        assert_eq!(check(&["/home/u/.local/share/mise/shims"]), ["/home/u/.local/share/mise"]);
        assert_eq!(check(&["/home/u/shims", "/home/shims", "shims", "/shims"]), Vec::<String>::new(), "never the home");
    }

    #[test]
    fn programs_are_read_and_logins_are_not() {
        let cargo = check(&["/home/u/.cargo/bin"]);
        assert_eq!(cargo, ["/home/u/.rustup", "/home/u/.cargo/registry", "/home/u/.cargo/git"]);
        assert_eq!(check(&["/home/u/.sdkman/candidates/java/current/bin"]), ["/home/u/.sdkman/candidates"]);
        assert_eq!(check(&["/home/u/bin", "/opt/.cargo/bin"]), Vec::<String>::new());
    }
}
