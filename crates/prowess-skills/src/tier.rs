//! Tiers: who wins when two skills have the same name?

/// Where a skill comes from; the greater tier wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Folders named by `skills.load.extraDirs`, and folders of plugins.
    Extra,
    /// Shipped with the program.
    Bundled,
    /// `skills` in the state directory.
    Managed,
    /// `.agents/skills` in the home directory.
    Personal,
    /// `.agents/skills` in the workspace.
    Project,
    /// `skills` in the workspace.
    Workspace,
}

impl Tier {
    /// All tiers, lowest first.
    pub const ALL: [Self; 6] =
        [Self::Extra, Self::Bundled, Self::Managed, Self::Personal, Self::Project, Self::Workspace];

    /// OpenClaw's label for the source, as it stands in reports.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Extra => "openclaw-extra",
            Self::Bundled => "openclaw-bundled",
            Self::Managed => "openclaw-managed",
            Self::Personal => "agents-skills-personal",
            Self::Project => "agents-skills-project",
            Self::Workspace => "openclaw-workspace",
        }
    }

    /// The one word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Extra => "extra",
            Self::Bundled => "bundled",
            Self::Managed => "managed",
            Self::Personal => "personal",
            Self::Project => "project",
            Self::Workspace => "workspace",
        }
    }
}
