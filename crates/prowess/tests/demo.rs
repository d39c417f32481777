//! Is the demo in the README what a new user sees?

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

#[test]
fn the_demo_in_the_readme_is_a_recording_of_this_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut recorder = Command::new("python3");
    recorder.arg(root.join("scripts/record-demo")).arg(env!("CARGO_BIN_EXE_prowess"));
    recorder.arg("--readme").arg(root.join("README.md")).arg("--check");
    match recorder.output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        // Recording takes Python; everything else about the program does not.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}"),
    }
}
