//! Rules: by what is a call judged?

use prowess_policy::Rules;
use prowess_policy::approvals::{Approvals, Overrides};
use prowess_policy::posture::{Ask, Security};
use prowess_policy::safe_bin::SafeBins;
use prowess_policy::wants::Ground;

use crate::exec_tool::ExecCall;
use crate::setting::Setting;

/// The rules for one call: what the file says, what the configuration says, and what the call adds to that. Where
/// neither says anything, commands are [contained](Security::Contained) if the sandbox `can_contain` them.
#[must_use]
pub fn rules(call: &ExecCall, setting: &Setting, approvals: &Approvals, can_contain: bool) -> Rules {
    let settings = &setting.settings;
    let is_unset = settings.security.is_none() && settings.ask.is_none() && approvals.is_silent(Some(&setting.agent));
    let usual = if is_unset { Security::Contained } else { Security::Allowlist };
    let security = settings.security.unwrap_or(usual);
    let ask = settings.ask.unwrap_or(Ask::OnMiss);
    let overrides = Overrides { security: Some(security), ask: Some(ask), ..Overrides::default() };
    let resolved = approvals.resolve(Some(&setting.agent), overrides);
    let mut posture = resolved.posture.tighten(Some(security), Some(ask)).tighten(call.security, call.ask);
    // Without a sandbox that holds, a contained command would be an unchecked one.
    if posture.security == Security::Contained && !can_contain {
        posture.security = Security::Allowlist;
    }
    let trusted = settings.safe_bin_trusted_dirs.clone();
    let (safe_bins, _) = SafeBins::new(settings.safe_bins.as_deref(), &settings.safe_bin_profiles, &trusted);
    Rules {
        posture,
        allowlist: resolved.allowlist,
        safe_bins,
        skill_bins: setting.skill_bins.clone(),
        home: setting.home.clone(),
        ground: Ground::default(),
    }
}
