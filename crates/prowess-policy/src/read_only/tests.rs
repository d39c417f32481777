use std::path::{Path, PathBuf};

use super::is_read_only;
use crate::lookup::{Identity, Keeper, Lookup, Program};
use crate::permit::{Binding, Dialect, Place, Shell};
use crate::posture::Posture;
use crate::safe_bin::SafeBins;
use crate::{Judgment, ProgramPlace, Request, Rules};

/// A machine that has every program in `/usr/bin`, but for some.
struct Machine;

fn program(path: &str, real: &str, keeper: Keeper) -> Program {
    let identity = Identity { device: 1, inode: 1, length: 1, modified: 0, changed: 0, digest: None };
    Program { path: PathBuf::from(path), real: PathBuf::from(real), keeper, identity }
}

impl Lookup for Machine {
    fn program(&self, token: &str) -> Option<Program> {
        match token {
            "missing" => None,
            "which" => Some(program("/usr/bin/which", "/usr/bin/which.debianutils", Keeper::System)),
            "dirname" => Some(program("/usr/bin/dirname", "/usr/bin/bash", Keeper::System)),
            "head" => Some(program("/usr/bin/head", "/usr/bin/coreutils", Keeper::System)),
            "tac" => Some(program("/ws/bin/tac", "/ws/bin/tac", Keeper::Anyone)),
            _ if token.contains('/') => Some(program(token, token, Keeper::System)),
            _ => Some(program(&format!("/usr/bin/{token}"), &format!("/usr/bin/{token}"), Keeper::System)),
        }
    }

    fn file(&self, _path: &Path) -> Option<Program> {
        None
    }
}

fn judge(command: &str, variables: &[(&str, &str)]) -> Judgment {
    judge_in("/ws", command, variables)
}

fn judge_in(cwd: &str, command: &str, variables: &[(&str, &str)]) -> Judgment {
    let rules = Rules {
        posture: Posture::HOST,
        allowlist: Vec::new(),
        safe_bins: SafeBins::default(),
        skill_bins: Vec::new(),
        home: "/home/me".into(),
        ground: crate::wants::Ground::default(),
    };
    let binding = Binding {
        command: command.to_owned(),
        cwd: Place { path: cwd.into(), device: 0, inode: 0 },
        environment: String::new(),
        agent: "main".to_owned(),
        session: "s".to_owned(),
    };
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let shell = Shell { path: "/bin/bash".into(), dialect: Dialect::Bash };
    rules.judge(Request { binding, shell, variables, place: ProgramPlace::Here }, &Machine)
}

#[test]
fn what_only_looks_is_read_only() {
    let commands = [
        "ls -la",
        "/bin/ls",
        "cat a b | grep -n x | head -5",
        "wc -l *.rs",
        "cat ~/notes",
        "cat src/dev/x ./sys/y ../proc2/z dev",
        "ls / /dev/null",
        "grep -r x src 2>/dev/null",
        "cat /usr/share/*.txt",
        "sort -rn -k2,3 a",
        "sort -t : --key 2 a",
        "uniq -c",
        "uniq -c a",
        "date",
        "date -u +%F",
        "date -d tomorrow +%s",
        "find . -name '*.rs' -type f -mtime -1",
        "find . -perm -u+w -print",
        "jq .a b.json",
        "jq -rn --arg a b '.a | length'",
        "rg -n --glob '*.rs' fn",
        "tree -L 2",
        "cat < a",
        "ls 2>/dev/null",
        "ls missing-dir 2>&1 | tail -1",
        "test -f a && cat a",
        "which ls",
        "pwd; whoami; uname -a",
        "echo done",
        "head a",
    ];
    for command in commands {
        assert!(is_read_only(&judge(command, &[])), "{command}");
    }
}

#[test]
fn what_could_change_something_is_not() {
    let commands = [
        "",
        "rm a",
        "touch a",
        "tee a",
        "cat a | tee b",
        "cat > x",
        "cat a 1<> b",
        "tail -f a >&out",
        "cat a >> x",
        "echo x >| a",
        "cat a <> b",
        "ls > /dev/sda",
        "cat < /dev/tcp/example.org/80",
        "ls &> out",
        "find . -delete",
        "find . -exec rm {} ;",
        "find . -exec rm {} +",
        "find . -okdir sh {} ;",
        "find . -fprint out",
        "find . -fls out",
        "find . $X",
        "find . -name *",
        "sort -o x a",
        "sort -ox a",
        "sort -no x a",
        "sort --output=x a",
        "sort --outp x a",
        "sort --compress-program=sh a",
        "sort -T /etc a",
        "sort $ARGS a",
        "sort * ",
        "uniq a b",
        "uniq -- a b",
        "date -s tomorrow",
        "date --set=now",
        "date -us now",
        "date 01010000",
        "hostname evil",
        "file -C -m magic",
        "tree -o out",
        "tree -R -H . -L 1",
        "sed -i s/a/b/ f",
        "sed -n 1p f",
        "awk 1 f",
        "git diff --output=x",
        "git diff --outpu=x",
        "git log --ext-diff",
        "git show --textconv",
        "git log --show-signature",
        "git log --format=%G?",
        "git branch new",
        "git branch -D old",
        "git branch --list -d old",
        "git branch -m a b",
        "git -c core.fsmonitor=evil status",
        "git -C elsewhere status",
        "git --git-dir=x status",
        "git --exec-path=x status",
        "git push",
        "git commit -m x",
        "git checkout .",
        "git st",
        "git",
        "cd elsewhere && git status",
        "rg --pre sh x",
        "rg --pre=sh x",
        "rg -z x",
        "curl https://example.org",
    ];
    for command in commands {
        assert!(!is_read_only(&judge(command, &[])), "{command}");
    }
}

#[test]
fn what_is_dressed_up_is_not_read_only_either() {
    let commands = [
        "GIT_EXTERNAL_DIFF=evil git diff",
        "A=b",
        "PATH=/tmp ls",
        "env ls",
        "env -S 'rm x'",
        "timeout 5 ls",
        "nice ls",
        "sh -c 'ls'",
        "bash -c 'rm x'",
        "xargs rm",
        "ls | xargs rm",
        "ls | sh",
        "echo $(rm x)",
        "echo `date`",
        "cat <(rm x)",
        "ls &",
        "(ls)",
        "{ ls; }",
        "if true; then ls; fi",
        "ls() { rm x; }; ls",
        "alias ls=rm; ls",
        "eval ls",
        "exec ls",
        "$CMD",
        "missing",
        "./ls",
        "/tmp/ls",
        "dirname /a",
        "tac a",
        "ls\u{a0}-la",
        "echo ${x:=y}",
        "echo ${x@P}",
        "echo $((a[0]))",
        "printf -v x y",
    ];
    for command in commands {
        assert!(!is_read_only(&judge(command, &[])), "{command}");
    }
}

#[test]
fn a_variable_from_the_caller_is_not_looked_at_but_refused() {
    assert!(!is_read_only(&judge("git diff", &[("GIT_EXTERNAL_DIFF", "evil")])));
    assert!(!is_read_only(&judge("ls", &[("LANG", "C")])));
}

/// The settings of a repository start programs, and where the command runs is the caller's choice.
#[test]
fn git_is_never_read_only() {
    let commands = [
        "git status",
        "git status --short",
        "git --no-pager log --oneline -5",
        "git diff",
        "git branch -a",
        "git rev-parse HEAD",
        "/usr/bin/git status",
        "ls && git status",
    ];
    for command in commands {
        assert!(!is_read_only(&judge(command, &[])), "{command}");
    }
}

#[test]
fn what_shows_variables_is_not_read_only() {
    let commands = [
        "echo $SEC_KEY",
        "echo \"$SEC_KEY\"",
        "echo ${SEC_KEY}",
        "echo a${SEC_KEY}b",
        "printf %s $SEC_KEY",
        "cat \"$HOME/notes\"",
        "grep x $FILE",
        "test -n \"$SEC_KEY\"",
        "[ \"$SEC_KEY\" = a ]",
        "test -e $SEC_KEY && ls",
        "ls < $SEC_KEY",
        "basename $SEC_KEY",
        "expr $SEC_KEY : '\\(.*\\)'",
        "printenv",
        "printenv SEC_KEY",
        "env",
        "env | grep SEC",
        "set",
        "export -p",
        "declare -p",
        "compgen -v",
        "jq -n env",
        "jq -n env.SEC_KEY",
        "jq -n '$ENV.SEC_KEY'",
        "jq -rn '$ENV|keys'",
        "jq -n --arg a b 'env|.[$a]'",
        "jq -n '\"\\(env)\"'",
        "jq -f filter.jq a.json",
        "jq -nf filter.jq",
        "jq --from-file filter.jq a.json",
        "jq -n 'include \"m\" {search:\"./\"}; f'",
        "jq -n 'import \"m\" as m; m::f'",
        "jq -L . -n f",
        "jq -n --args '$x' a",
    ];
    for command in commands {
        assert!(!is_read_only(&judge(command, &[])), "{command}");
    }
}

#[test]
fn what_leads_to_running_programs_or_devices_is_not_read_only() {
    let commands = [
        "cat /proc/self/environ",
        "cat //proc/self/environ",
        "cat /./proc/self/environ",
        "cat /usr/../proc/self/environ",
        "cat ../proc/self/environ",
        "cat ./../../../proc/self/environ",
        "cat a/../../proc/self/environ",
        "cat '/pro'c/self/environ",
        "cat /pro*/self/environ",
        "cat /?roc/self/environ",
        "cat /[p]roc/self/environ",
        "cat /*/self/environ",
        "cat /./*/self/environ",
        "cat .?/proc/self/environ",
        "cat .*/proc/self/environ",
        "cat {/proc,x}/self/environ",
        "cat /{proc,x}/self/environ",
        "cat ~/../../proc/self/environ",
        "cat < /proc/self/environ",
        "cat < ../proc/self/environ",
        "strings /proc/1/environ",
        "grep --file=/proc/self/environ x",
        "grep -f/proc/self/environ x",
        "grep -f../proc/self/environ x",
        "grep -r SEC /",
        "grep -r SEC ..",
        "grep -r SEC /.",
        "rg SEC /",
        "rg -f /proc/self/environ x",
        "ls /proc",
        "find /proc -name environ",
        "stat /sys/kernel",
        "cat /sys/class/dmi/id/product_serial",
        "cat /dev/sda",
        "head -c 1 /dev/random",
        "cat /dev/null/../sda",
        "cat /dev/fd/0",
        "cat < /dev/stdin",
        "test -r /proc/1/environ",
        "wc --files0-from=/proc/self/environ",
    ];
    for command in commands {
        assert!(!is_read_only(&judge(command, &[])), "{command}");
    }
}

#[test]
fn where_names_lead_out_of_bounds_nothing_is_read_only() {
    for cwd in ["/", "/proc", "/proc/self", "/sys/kernel", "/dev"] {
        assert!(!is_read_only(&judge_in(cwd, "ls", &[])), "{cwd}");
    }
    assert!(is_read_only(&judge_in("/process", "cat self/environ", &[])));
}
