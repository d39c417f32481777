//! Programs that git and other tools start by themselves: how are they kept from it?
//!
//! An editor, a pager, a hook or a filter is code that nobody judged, named by a file in the workspace. A run gets
//! variables that name harmless programs instead. Git's own settings come in as `GIT_CONFIG_*`, which outrank every
//! file; what a setting of a repository names by a name of its own (a filter, a diff driver) is found in its file and
//! overridden one by one. The sandbox holds without any of this; here the code does not even start in it.

use crate::git_config::GitSetting;

/// Fails, so that a program that wants a person at an editor says so and stops.
const NO_EDITOR: &str = "false";

/// The same for git, which shows it.
const NO_GIT_EDITOR: &str = "sh -c 'echo \"No editor is available here: give the text with an option such as -m, or \
                             keep it with --no-edit.\" >&2; exit 1'";

/// A diff of two files in git's order of arguments, for drivers that would be another program.
const PLAIN_DIFF: &str = "f() { diff -u \"$2\" \"$5\" || :; }; f";

/// Variables of programs that open an editor or a pager.
const VARIABLES: &[(&str, &str)] = &[
    ("EDITOR", NO_EDITOR),
    ("GIT_ASKPASS", ""),
    // The operator's file is out of reach in a sandbox, and git gives up when it may not open what it sees.
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_EDITOR", NO_GIT_EDITOR),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_PAGER", "cat"),
    ("GIT_SEQUENCE_EDITOR", NO_GIT_EDITOR),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("KUBE_EDITOR", NO_EDITOR),
    ("MANPAGER", "cat"),
    ("PAGER", "cat"),
    ("SUDO_EDITOR", NO_EDITOR),
    ("SYSTEMD_EDITOR", NO_EDITOR),
    ("SYSTEMD_PAGER", "cat"),
    ("VISUAL", NO_EDITOR),
];

/// Where programs keep what they could make or fetch again. The home is out of reach in a sandbox, and some of them do not
/// start without such a directory; `/tmp` is the conversation's own.
const CACHES: &[(&str, &str)] =
    &[("XDG_CACHE_HOME", "/tmp/.cache"), ("npm_config_cache", "/tmp/.npm"), ("npm_config_store_dir", "/tmp/.pnpm")];

/// Programs that look for news of themselves whatever they are asked to do. Nobody wants to be asked about that.
#[rustfmt::skip]
const NO_NEWS: &[(&str, &str)] = &[
    ("CHECKPOINT_DISABLE", "1"), ("DOTNET_CLI_TELEMETRY_OPTOUT", "1"), ("DO_NOT_TRACK", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"), ("HOMEBREW_NO_AUTO_UPDATE", "1"), ("NEXT_TELEMETRY_DISABLED", "1"),
    ("NO_UPDATE_NOTIFIER", "1"), ("PIP_DISABLE_PIP_VERSION_CHECK", "1"), ("npm_config_fund", "false"),
    ("npm_config_update_notifier", "false"),
];

/// Settings of git that name a program, with one that starts nothing or git's own.
const GIT: &[(&str, &str)] = &[
    // A repository may not be written to where its settings are protected; a new branch needs no such entry.
    ("branch.autoSetupMerge", "false"),
    ("commit.gpgSign", "false"),
    ("core.alternateRefsCommand", "true"),
    ("core.askPass", ""),
    ("core.editor", NO_GIT_EDITOR),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "ssh"),
    ("credential.helper", ""),
    ("gpg.program", "gpg"),
    ("gpg.ssh.program", "ssh-keygen"),
    ("gpg.x509.program", "gpgsm"),
    ("interactive.diffFilter", "cat"),
    ("protocol.ext.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("sequence.editor", NO_GIT_EDITOR),
    ("submodule.recurse", "false"),
    ("tag.gpgSign", "false"),
];

/// What stands in for a setting by which a repository names a program, by section and key. Git
/// passes by a filter whose command is empty.
const DRIVERS: &[(&str, &str, &str)] = &[
    ("diff", "command", PLAIN_DIFF),
    ("diff", "external", PLAIN_DIFF),
    ("diff", "textconv", "cat"),
    ("filter", "clean", ""),
    ("filter", "process", ""),
    ("filter", "required", "false"),
    ("filter", "smudge", ""),
    ("merge", "driver", "git merge-file %A %O %B"),
    ("pager", "*", "false"),
    ("remote", "receivepack", "git-receive-pack"),
    ("remote", "uploadpack", "git-upload-pack"),
];

/// The most settings of a repository that are overridden.
const MAX_OVERRIDES: usize = 200;

/// Variables under which editors and pagers do not start, caches are within reach, and no program looks for news.
pub fn quiet_variables() -> impl Iterator<Item = (String, String)> {
    let all = VARIABLES.iter().chain(CACHES).chain(NO_NEWS);
    all.map(|&(name, value)| (name.to_owned(), value.to_owned()))
}

/// Git's settings under which it starts no program that a file names. `repository` is what the repository's own file
/// sets, `user` what the operator's does: of that, only who commits is taken over, as far as the repository does not say.
#[must_use]
pub fn git_overrides(repository: &[GitSetting], user: &[GitSetting]) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> =
        GIT.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    for setting in repository {
        let driver = DRIVERS
            .iter()
            .find(|(section, key, _)| *section == setting.section && (*key == "*" || *key == setting.key));
        let Some((_, _, value)) = driver else { continue };
        let pair = (setting.name(), (*value).to_owned());
        if pairs.len() < MAX_OVERRIDES && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    for name in ["user.name", "user.email", "init.defaultbranch"] {
        let is_said = repository.iter().any(|setting| setting.name() == name);
        let own = user.iter().rev().find(|setting| setting.name() == name).and_then(|setting| setting.value.as_ref());
        pairs.extend(own.filter(|_| !is_said).map(|value| (name.to_owned(), value.clone())));
    }
    pairs
}

/// The variables that give git these settings. Whoever adds settings adds pairs: there is one count for all of them.
#[must_use]
pub fn git_config_env(pairs: &[(String, String)]) -> Vec<(String, String)> {
    // A value with a line break could pass for two.
    let usable =
        pairs.iter().filter(|(name, value)| !name.contains(['\n', '\r', '\0']) && !value.contains(['\n', '\r', '\0']));
    let mut vars: Vec<(String, String)> = Vec::new();
    let mut count = 0_usize;
    for (name, value) in usable {
        vars.push((format!("GIT_CONFIG_KEY_{count}"), name.clone()));
        vars.push((format!("GIT_CONFIG_VALUE_{count}"), value.clone()));
        count += 1;
    }
    vars.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string()));
    vars
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git_config::parse_git_config;

    fn overridden(repository: &str, user: &str) -> Vec<(String, String)> {
        let settings = |text: &str| parse_git_config(text.as_bytes()).unwrap();
        let all = git_overrides(&settings(repository), &settings(user));
        all[GIT.len()..].to_vec()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn what_a_repository_names_is_overridden_by_its_name() {
        let repository = "[filter \"My LFS\"]\nclean=x\nsmudge=y\nrequired\n[diff \"pdf\"]\ntextconv=z\n[diff]\nexternal=w\n\
            [merge \"m\"]\ndriver=v\n[remote \"origin\"]\nurl=u\nuploadpack=t\n[pager]\nlog=s\n";
        assert_eq!(
            overridden(repository, ""),
            [
                pair("filter.My LFS.clean", ""),
                pair("filter.My LFS.smudge", ""),
                pair("filter.My LFS.required", "false"),
                pair("diff.pdf.textconv", "cat"),
                pair("diff.external", PLAIN_DIFF),
                pair("merge.m.driver", "git merge-file %A %O %B"),
                pair("remote.origin.uploadpack", "git-upload-pack"),
                pair("pager.log", "false"),
            ]
        );
    }

    #[test]
    fn who_commits_is_the_repositorys_word_then_the_users() {
        let user = "[user]\nname=U\nemail=u@x\n[core]\neditor=vi\n[alias]\nst=!x\n";
        assert_eq!(overridden("", user), [pair("user.name", "U"), pair("user.email", "u@x")]);
        assert_eq!(overridden("[user]\nemail=work@x\n", user), [pair("user.name", "U")]);
    }

    #[test]
    fn the_settings_are_numbered_without_gaps() {
        let pairs = [pair("a.b", "1"), pair("c.d\n", "2"), pair("e.f", "x\ny"), pair("g.h", "")];
        let vars = git_config_env(&pairs);
        assert_eq!(
            vars,
            [
                pair("GIT_CONFIG_KEY_0", "a.b"),
                pair("GIT_CONFIG_VALUE_0", "1"),
                pair("GIT_CONFIG_KEY_1", "g.h"),
                pair("GIT_CONFIG_VALUE_1", ""),
                pair("GIT_CONFIG_COUNT", "2"),
            ]
        );
        assert_eq!(git_config_env(&[]), [pair("GIT_CONFIG_COUNT", "0")]);
    }

    #[test]
    fn nobody_else_may_set_these_names() {
        let names = VARIABLES.iter().map(|(name, _)| *name).chain(["GIT_CONFIG_COUNT"]);
        let free: Vec<&str> = names.filter(|name| !crate::env::hijacks(name)).collect();
        // What these hold comes last, so a caller's word has no effect.
        assert_eq!(free, ["GIT_MERGE_AUTOEDIT", "GIT_TERMINAL_PROMPT", "KUBE_EDITOR", "SYSTEMD_EDITOR"]);
    }
}
