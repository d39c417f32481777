//! May this command run?
//!
//! A command text is read with a real shell grammar ([`Script`]), each program in it is looked up on the machine that
//! would run it ([`lookup`]), and [`Rules::judge`] says allow, ask or deny, with the reason for every part. Only a
//! [`Judgment`] makes a [`Permit`], and only a permit can be run: it owns the judged text, so what runs is what was
//! judged. Nothing here touches a disk, a process or a clock.

pub mod advice;
pub mod approvals;
pub mod disguise;
pub mod env;
pub mod forecast;
pub mod git_config;
mod judge;
pub mod lease;
pub mod lookup;
pub mod ownership;
mod pattern;
mod permit;
pub mod posture;
mod prose;
pub mod protected;
pub mod reach;
mod read_only;
pub mod safe_bin;
pub mod script;
mod settings;
pub mod system_run;
pub mod wants;
pub mod wrapper;

pub use judge::{
    Cover, Grant, Judged, Judgment, NeverLasts, Objection, ProgramPlace, Request, Rules, SkillBin, Verdict,
};
pub use pattern::Pattern;
pub use permit::{Answer, Basis, Binding, Denied, Dialect, Permit, Pin, Place, Question, Shell, Shown, shown};
pub use prose::listed;
pub use read_only::is_read_only;
pub use script::{Script, quote};
pub use settings::{ExecSettings, Grants, Host, SandboxChoice};
