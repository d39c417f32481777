//! Containers, clusters, clouds and what sets machines up.

use super::Kind::{self, Elsewhere, InlineCode, Interactive, LoadsCode, Service, Settings, StartsProgram, Writes};
use super::engine::{BASE, Sub, Subs, Table, sub, sub_with};

pub(super) const ALWAYS: &[(&str, Kind)] = &[
    ("ansible-pull", Elsewhere),
    ("ansible-test", StartsProgram),
    ("chef-apply", LoadsCode),
    ("chef-client", LoadsCode),
    ("chef-solo", LoadsCode),
    ("gpg-connect-agent", Interactive),
    ("msfconsole", Interactive),
    ("ncftp", Interactive),
    ("psftp", Interactive),
    ("rlogin", Elsewhere),
    ("salt", Elsewhere),
    ("salt-call", Elsewhere),
    ("salt-ssh", Elsewhere),
    ("sshuttle", Elsewhere),
    ("telnet", Interactive),
    ("tmate", Interactive),
    ("tnftp", Interactive),
    ("wsl", StartsProgram),
];

/// What `kubectl`, or a program for containers, starts when it stands behind the name of a distribution.
const STARTS: &[&str] =
    &["exec", "run", "debug", "attach", "cp", "edit", "proxy", "plugin", "create", "tasks", "task", "t", "start"];

const CLUSTERS: &[Sub] = &[
    sub_with("kubectl", STARTS, Elsewhere),
    sub_with("crictl", STARTS, Elsewhere),
    sub_with("ctr", STARTS, Elsewhere),
    sub_with("helm", &["plugin"], LoadsCode),
    sub("ssh", Elsewhere),
    sub("cp", Elsewhere),
    sub("mount", Service),
    sub("server", Service),
    sub("agent", Service),
    sub("addons", Settings),
    sub("enable", Settings),
    sub_with("config", &["set", "unset"], Settings),
];

pub(super) const TABLES: &[Table] = &[
    Table {
        names: &["buildah"],
        long: &[("--hooks-dir", StartsProgram), ("--runtime", StartsProgram), ("--output", Writes)],
        values: "ft",
        subs: Subs::Denied(&[
            sub("run", Elsewhere),
            sub("unshare", StartsProgram),
            sub("copy", Elsewhere),
            sub("add", Elsewhere),
            sub("mount", Service),
        ]),
        ..BASE
    },
    Table {
        names: &["crictl"],
        long: &[("--runtime-endpoint", Service), ("--image-endpoint", Service), ("--config", LoadsCode)],
        flags: "aq",
        subs: Subs::Denied(&[
            sub("exec", Elsewhere),
            sub("run", Elsewhere),
            sub("runp", Elsewhere),
            sub("create", Elsewhere),
            sub("start", Elsewhere),
            sub("attach", Elsewhere),
            sub_with("config", &["*"], Settings),
        ]),
        ..BASE
    },
    Table {
        names: &["ctr", "runc", "crun", "youki", "runsc"],
        long: &[("--address", Service), ("--root", LoadsCode), ("--log", Writes)],
        values: "n",
        subs: Subs::Denied(&[
            sub("run", Elsewhere),
            sub("exec", Elsewhere),
            sub("create", Elsewhere),
            sub("start", Elsewhere),
            sub("restore", Elsewhere),
            sub("do", Elsewhere),
            sub("shim", Service),
            sub("install", Settings),
            sub_with("tasks", &["exec", "start", "attach"], Elsewhere),
            sub_with("task", &["exec", "start", "attach"], Elsewhere),
            sub_with("t", &["exec", "start", "attach"], Elsewhere),
            sub_with("containers", &["create", "restore"], Elsewhere),
            sub_with("container", &["create", "restore"], Elsewhere),
            sub_with("c", &["create", "restore"], Elsewhere),
            sub_with("images", &["mount"], Service),
        ]),
        ..BASE
    },
    Table {
        names: &["k3s", "k0s", "rke2", "microk8s", "minikube", "colima", "orb", "orbctl"],
        long: &[("--kubeconfig", StartsProgram)],
        values: "pno",
        long_values: &["--profile", "--namespace"],
        subs: Subs::Denied(CLUSTERS),
        ..BASE
    },
    Table {
        names: &["consul", "vault"],
        subs: Subs::Denied(&[
            sub("exec", Elsewhere),
            sub("ssh", Elsewhere),
            sub("watch", StartsProgram),
            sub("lock", StartsProgram),
            sub("agent", Service),
            sub("server", Service),
            sub("connect", StartsProgram),
        ]),
        ..BASE
    },
    Table {
        names: &["gcloud"],
        long: &[("--command", Elsewhere), ("--ssh-flag", StartsProgram), ("--flags-file", LoadsCode)],
        long_values: &["--project", "--zone", "--region", "--format", "--filter"],
        exact: &[
            ("ssh", Elsewhere),
            ("scp", Elsewhere),
            ("connect-to-serial-port", Elsewhere),
            ("start-iap-tunnel", Service),
            ("cloud-shell", Elsewhere),
            ("interactive", Interactive),
        ],
        subs: Subs::Denied(&[
            sub_with("config", &["set", "unset"], Settings),
            sub_with("components", &["install", "update", "restore"], LoadsCode),
        ]),
        ..BASE
    },
    Table {
        names: &["az"],
        exact: &[
            ("run-command", Elsewhere),
            ("ssh", Elsewhere),
            ("exec", Elsewhere),
            ("serial-console", Elsewhere),
            ("command", Elsewhere),
            ("interactive", Interactive),
        ],
        values: "ngo",
        subs: Subs::Denied(&[
            sub_with("extension", &["add", "update"], LoadsCode),
            sub_with("config", &["set", "unset"], Settings),
            sub_with("alias", &["*"], Settings),
            sub_with("cloud", &["set", "register", "update"], Settings),
        ]),
        ..BASE
    },
    Table {
        names: &["aws"],
        exact: &[
            ("start-session", Elsewhere),
            ("send-command", Elsewhere),
            ("execute-command", Elsewhere),
            ("ssh", Elsewhere),
            ("invoke", Writes),
        ],
        long_values: &["--profile", "--region", "--output", "--query"],
        subs: Subs::Denied(&[sub_with("configure", &["set", "import", "add-model"], Settings)]),
        ..BASE
    },
    Table {
        names: &["doctl", "hcloud", "eb", "cf", "scw", "tsh", "tailscale", "okteto", "railway", "render", "devspace"],
        exact: &[
            ("ssh", Elsewhere),
            ("exec", Elsewhere),
            ("shell", Elsewhere),
            ("enter", Elsewhere),
            ("run", Elsewhere),
            ("connect", Elsewhere),
            ("serve", Service),
            ("install-plugin", LoadsCode),
        ],
        ..BASE
    },
    Table {
        names: &["virsh"],
        long: &[("--connect", Service)],
        short: &[("-c", Service)],
        subs: Subs::Denied(&[
            sub("console", Elsewhere),
            sub("qemu-agent-command", Elsewhere),
            sub("qemu-monitor-command", Elsewhere),
            sub("lxc-enter-namespace", Elsewhere),
            sub("create", Elsewhere),
            sub("define", Settings),
            sub("edit", StartsProgram),
            sub("send-key", Elsewhere),
        ]),
        ..BASE
    },
    Table {
        names: &["packer"],
        subs: Subs::Denied(&[
            sub("build", StartsProgram),
            sub("console", Interactive),
            sub("plugins", LoadsCode),
            sub("execute", LoadsCode),
        ]),
        ..BASE
    },
    Table {
        names: &["puppet", "bolt", "knife"],
        long: &[("--execute", InlineCode), ("--modulepath", LoadsCode), ("--config", LoadsCode)],
        short: &[("-e", InlineCode), ("-c", LoadsCode), ("-E", InlineCode)],
        subs: Subs::Denied(&[
            sub("apply", LoadsCode),
            sub("agent", Service),
            sub("device", Service),
            sub("script", Elsewhere),
            sub("task", Elsewhere),
            sub("command", Elsewhere),
            sub("plan", Elsewhere),
            sub("file", Elsewhere),
            sub("ssh", Elsewhere),
            sub("exec", InlineCode),
            sub("bootstrap", Elsewhere),
            sub("resource", Settings),
            sub_with("module", &["install", "upgrade"], LoadsCode),
            sub_with("config", &["set"], Settings),
        ]),
        ..BASE
    },
    Table {
        names: &[
            "ansible-galaxy",
            "ansible-doc",
            "ansible-inventory",
            "ansible-vault",
            "ansible-lint",
            "ansible-config",
        ],
        long: &[
            ("--inventory", StartsProgram),
            ("--module-path", LoadsCode),
            ("--vault-password-file", StartsProgram),
            ("--vault-id", StartsProgram),
            ("--rules-dir", LoadsCode),
            ("--playbook-dir", LoadsCode),
        ],
        short: &[("-i", StartsProgram), ("-M", LoadsCode)],
        subs: Subs::Denied(&[
            sub("install", LoadsCode),
            sub("edit", StartsProgram),
            sub("create", StartsProgram),
            sub_with("role", &["install"], LoadsCode),
            sub_with("collection", &["install", "verify"], LoadsCode),
        ]),
        ..BASE
    },
    Table {
        names: &["smbclient", "rpcclient"],
        long: &[("--command", InlineCode), ("--configfile", LoadsCode), ("--tar", Writes), ("--option", StartsProgram)],
        short: &[("-c", InlineCode), ("-s", LoadsCode), ("-T", Writes)],
        flags: "gNPk",
        values: "LUIWpm",
        ..BASE
    },
    Table { names: &["sshfs"], short: &[("-o", StartsProgram), ("-F", LoadsCode)], flags: "Cdfs", values: "p", ..BASE },
    Table {
        names: &["openvpn"],
        long: &[
            ("--up", StartsProgram),
            ("--down", StartsProgram),
            ("--config", LoadsCode),
            ("--plugin", LoadsCode),
            ("--route-up", StartsProgram),
            ("--ipchange", StartsProgram),
            ("--tls-verify", StartsProgram),
            ("--client-connect", StartsProgram),
            ("--learn-address", StartsProgram),
            ("--auth-user-pass-verify", StartsProgram),
            ("--log", Writes),
            ("--writepid", Writes),
            ("--iproute", StartsProgram),
            ("--cd", LoadsCode),
        ],
        ..BASE
    },
    Table {
        names: &["certbot"],
        long: &[
            ("--pre-hook", StartsProgram),
            ("--post-hook", StartsProgram),
            ("--deploy-hook", StartsProgram),
            ("--renew-hook", StartsProgram),
            ("--manual-auth-hook", StartsProgram),
            ("--manual-cleanup-hook", StartsProgram),
            ("--config", LoadsCode),
            ("--config-dir", LoadsCode),
        ],
        ..BASE
    },
];
