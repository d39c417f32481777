#!/bin/sh
# List tmux sessions, one line each:
#   SOCKET <tab> SESSION <tab> WINDOWS <tab> attached|detached <tab> CREATED (UTC)
# Exit: 0 something listed, 1 nothing found, 2 wrong usage, 3 tmux missing.
set -eu

usage() {
    cat <<'USAGE'
usage: find-sessions.sh [-L NAME | -S PATH | -A] [-q TEXT]
  -L NAME   the server with this socket name
  -S PATH   the server with this socket path
  -A        every server of this user (looks in the tmux socket directory)
  -q TEXT   only sessions whose name contains TEXT
Without -L, -S or -A: the server of $TMUX, else the default server.
USAGE
}

fail() {
    printf 'find-sessions: %s\n' "$1" >&2
    exit "$2"
}

choose() {
    [ -z "$mode" ] || fail 'use only one of -L, -S and -A' 2
    mode=$1
}

mode='' value='' query=''
while getopts L:S:Aq:h option; do
    case $option in
        L) choose name; value=$OPTARG ;;
        S) choose path; value=$OPTARG ;;
        A) choose all ;;
        q) query=$OPTARG ;;
        h) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 0 ] || { usage >&2; exit 2; }
command -v tmux >/dev/null 2>&1 || fail 'tmux is not installed' 3

utc() {
    date -u -d "@$1" '+%Y-%m-%dT%H:%M:%SZ' 2>/dev/null || # GNU
        date -u -r "$1" '+%Y-%m-%dT%H:%M:%SZ' 2>/dev/null || # BSD, macOS
        printf '%s' "$1"
}

# list LABEL [tmux options]: print the sessions of one server, quiet if it is not running.
# Session names cannot hold a colon, and the name comes last, so odd names stay whole.
list() {
    label=$1
    shift
    tmux "$@" list-sessions -F '#{session_windows}:#{session_attached}:#{session_created}:#{session_name}' 2>/dev/null |
        while IFS=: read -r windows attached created name; do
            case $name in *"$query"*) ;; *) continue ;; esac
            state=detached
            [ "$attached" = 0 ] || state=attached
            printf '%s\t%s\t%s\t%s\t%s\n' "$label" "$name" "$windows" "$state" "$(utc "$created")"
        done
}

found=$(
    case $mode in
        name) list "$value" -L "$value" ;;
        path) list "$value" -S "$value" ;;
        all)
            for socket in "${TMUX_TMPDIR:-/tmp}/tmux-$(id -u)"/*; do
                [ -S "$socket" ] || continue
                list "$socket" -S "$socket"
            done
            ;;
        *)
            label=default
            [ -z "${TMUX:-}" ] || label=${TMUX%%,*}
            list "$label"
            ;;
    esac
)
[ -n "$found" ] || fail 'no sessions found' 1
printf '%s\n' "$found"
