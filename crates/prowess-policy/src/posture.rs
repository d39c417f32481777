//! The posture: how much may run here, and when is a person asked?
//!
//! Both answers are ordered, so "whoever is stricter wins" is `min` for [`Security`] and `max` for [`Ask`]. A caller
//! can tighten a posture; nothing here loosens one.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What may run, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Security {
    /// Nothing.
    Deny,
    /// What the allowlist, the safe bins or the skill bins cover.
    Allowlist,
    /// Anything that stays inside the sandbox, which the kernel enforces; people are asked about what leaves it.
    Contained,
    /// Anything.
    Full,
}

impl Security {
    /// Reads the word, whatever its case and the space around it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Deny, Self::Allowlist, Self::Contained, Self::Full]
            .into_iter()
            .find(|it| word.trim().eq_ignore_ascii_case(it.word()))
    }

    /// The one word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allowlist => "allowlist",
            Self::Contained => "contained",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// When a person is asked, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Never: what is not covered is refused.
    Off,
    /// When something is not covered.
    OnMiss,
    /// Every time.
    Always,
}

impl Ask {
    /// Reads the word, whatever its case and the space around it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Off, Self::OnMiss, Self::Always].into_iter().find(|it| word.trim().eq_ignore_ascii_case(it.word()))
    }

    /// The one word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::OnMiss => "on-miss",
            Self::Always => "always",
        }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How far the rules cover a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coverage {
    /// Every part of it.
    Covered,
    /// It was read, and something in it is not covered.
    Missed,
    /// It could not be read with certainty.
    Unread,
}

/// The rules of one agent in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Posture {
    /// What may run.
    pub security: Security,
    /// When a person is asked.
    pub ask: Ask,
    /// What may run when a person was asked and did not answer.
    #[serde(rename = "askFallback")]
    pub fallback: Security,
    /// Whether programs that skills declare may run.
    pub auto_allow_skills: bool,
}

impl Posture {
    /// What counts where nobody said anything: nothing runs.
    pub const SILENT: Self =
        Self { security: Security::Deny, ask: Ask::OnMiss, fallback: Security::Deny, auto_allow_skills: false };

    /// What a host starts from: what the allowlist covers runs, the rest is asked about.
    pub const HOST: Self = Self { security: Security::Allowlist, ..Self::SILENT };

    /// The stricter of this posture and what a caller asks for.
    #[must_use]
    pub fn tighten(self, security: Option<Security>, ask: Option<Ask>) -> Self {
        Self {
            security: security.map_or(self.security, |security| security.min(self.security)),
            ask: ask.map_or(self.ask, |ask| ask.max(self.ask)),
            ..self
        }
    }

    fn is_by_rules(self) -> bool {
        matches!(self.security, Security::Allowlist | Security::Contained)
    }

    /// Whether a person has to be asked before this runs. A miss that nobody is asked about is refused.
    #[must_use]
    pub fn requires_approval(self, coverage: Coverage) -> bool {
        match self.ask {
            Ask::Always => true,
            // Where a sandbox cannot be counted on, `contained` is as strict as `allowlist`.
            Ask::OnMiss => self.is_by_rules() && coverage != Coverage::Covered,
            Ask::Off => false,
        }
    }

    /// Whether a command runs after all when a person was asked and nobody answered.
    ///
    /// The peer lets `full` run anything then. Silence is no approval: the most it can do here is to let run what the
    /// rules cover anyway, and never what looks disguised.
    #[must_use]
    pub fn unanswered(self, satisfied: bool, disguised: bool) -> bool {
        match self.fallback {
            Security::Deny => false,
            Security::Allowlist | Security::Contained | Security::Full => {
                self.security != Security::Deny && satisfied && !disguised
            }
        }
    }

    /// Decides a `system.run` request on a node.
    #[must_use]
    pub fn node_run(self, request: NodeRequest) -> NodeVerdict {
        let approved = request.approval == Approval::Given;
        if self.security == Security::Deny {
            let refusal = Some(NodeRefusal::Disabled);
            return NodeVerdict { refusal, requires_ask: false, approved, shell_blocked: false };
        }
        // What a shell would make of its text is its own affair; on a node only a person can vouch for that.
        let shell_blocked = self.is_by_rules() && request.form == NodeForm::Shell;
        let coverage = if shell_blocked { Coverage::Unread } else { request.coverage };
        let requires_ask = self.requires_approval(coverage);
        let missed = self.is_by_rules() && coverage != Coverage::Covered;
        let refusal = match (approved, requires_ask, missed) {
            (true, _, _) | (false, false, false) => None,
            (false, true, _) => Some(NodeRefusal::ApprovalRequired),
            (false, false, true) if shell_blocked => Some(NodeRefusal::ShellMiss),
            (false, false, true) => Some(NodeRefusal::Miss),
        };
        NodeVerdict { refusal, requires_ask, approved, shell_blocked }
    }
}

/// A `system.run` request, as far as the posture cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeRequest {
    /// How far the node's rules cover it.
    pub coverage: Coverage,
    /// Whether a person approved it, for this run or for good.
    pub approval: Approval,
    /// How the command is written.
    pub form: NodeForm,
}

/// Whether a person said yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Approval {
    /// Somebody did.
    Given,
    /// Nobody did.
    Missing,
}

/// How a command reaches a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeForm {
    /// A program and its arguments.
    Direct,
    /// A shell, `cmd.exe` or PowerShell with the text it is to run.
    Shell,
}

/// What a node makes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeVerdict {
    /// Why it does not run; it runs when there is no reason.
    pub refusal: Option<NodeRefusal>,
    /// Whether a person has to be asked.
    pub requires_ask: bool,
    /// Whether a person said yes.
    pub approved: bool,
    /// Whether it counts as not covered only because it goes through a shell.
    pub shell_blocked: bool,
}

impl NodeVerdict {
    /// Whether it runs.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.refusal.is_none()
    }
}

/// Why a node does not run something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NodeRefusal {
    /// Nothing runs on this node.
    #[error("SYSTEM_RUN_DISABLED: security=deny")]
    Disabled,
    /// A person has to say yes first.
    #[error("SYSTEM_RUN_DENIED: approval required")]
    ApprovalRequired,
    /// It is not covered, and nobody is asked.
    #[error("SYSTEM_RUN_DENIED: allowlist miss")]
    Miss,
    /// The same, for a command that goes through a shell.
    #[error(
        "SYSTEM_RUN_DENIED: allowlist miss (a shell with inline text needs an approval; set ask to on-miss or always)"
    )]
    ShellMiss,
}

impl NodeRefusal {
    /// The reason in the `exec.denied` event.
    #[must_use]
    pub fn event_reason(self) -> &'static str {
        match self {
            Self::Disabled => "security=deny",
            Self::ApprovalRequired => "approval-required",
            Self::Miss | Self::ShellMiss => "allowlist-miss",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case_and_written_as_the_peer_does() {
        assert_eq!(Security::parse(" Full\n"), Some(Security::Full));
        assert_eq!(Ask::parse("ON-MISS"), Some(Ask::OnMiss));
        assert_eq!((Security::parse("yolo"), Ask::parse("")), (None, None));
        assert_eq!(serde_json::to_string(&(Security::Allowlist, Ask::OnMiss)).unwrap(), r#"["allowlist","on-miss"]"#);
    }

    #[test]
    fn a_caller_can_only_tighten() {
        let loose = Posture { security: Security::Full, ask: Ask::Off, ..Posture::SILENT };
        let tight = loose.tighten(Some(Security::Deny), Some(Ask::Always));
        assert_eq!((tight.security, tight.ask), (Security::Deny, Ask::Always));
        assert_eq!(tight.tighten(Some(Security::Full), Some(Ask::Off)), tight);
        assert_eq!(loose.tighten(None, None), loose);
    }

    #[test]
    fn silence_approves_only_what_is_covered_and_plain() {
        for fallback in [Security::Deny, Security::Allowlist, Security::Full] {
            for security in [Security::Deny, Security::Allowlist, Security::Full] {
                let posture = Posture { security, fallback, ..Posture::SILENT };
                let may = fallback != Security::Deny && security != Security::Deny;
                assert_eq!(posture.unanswered(true, false), may, "{posture:?}");
                assert!(!posture.unanswered(false, false) && !posture.unanswered(true, true), "{posture:?}");
            }
        }
    }
}
