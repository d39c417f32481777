#!/bin/sh
# Wait until a tmux pane shows a text.
# Exit: 0 seen, 1 timed out, 2 wrong usage, 3 tmux or the pane is missing.
set -eu

usage() {
    cat <<'USAGE'
usage: wait-for-text.sh -t TARGET -p PATTERN [options]
  -t TARGET   pane: session, session:window or session:window.pane, or an id such as %3
  -p PATTERN  extended regular expression, tried on each line
  -F          PATTERN is plain text
  -T SECONDS  give up after this long (default 15)
  -i SECONDS  time between looks (default 0.5)
  -n LINES    also search this many lines of history (default 0: the visible screen only)
  -L NAME     tmux socket name
  -S PATH     tmux socket path
USAGE
}

fail() {
    printf 'wait-for-text: %s\n' "$1" >&2
    exit "$2"
}

target='' pattern='' kind=-E limit=15 interval=0.5 lines=0 flag='' socket=''
while getopts t:p:FT:i:n:L:S:h option; do
    case $option in
        t) target=$OPTARG ;;
        p) pattern=$OPTARG ;;
        F) kind=-F ;;
        T) limit=$OPTARG ;;
        i) interval=$OPTARG ;;
        n) lines=$OPTARG ;;
        L | S) flag=-$option socket=$OPTARG ;;
        h) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ $# -ne 0 ] || [ -z "$target" ] || [ -z "$pattern" ]; then
    usage >&2
    exit 2
fi
case $limit in '' | *[!0-9]*) fail '-T takes whole seconds' 2 ;; esac
case $lines in '' | *[!0-9]*) fail '-n takes a number of lines' 2 ;; esac
case $interval in '' | . | *[!0-9.]* | *.*.*) fail '-i takes seconds, such as 0.5' 2 ;; esac
command -v tmux >/dev/null 2>&1 || fail 'tmux is not installed' 3

# grep says 2 for a broken pattern; find that out now and not after the time-out.
bad=0
printf '' | grep "$kind" -e "$pattern" >/dev/null 2>&1 || bad=$?
[ "$bad" -lt 2 ] || fail "not a valid pattern: $pattern" 2

# -J joins lines that the pane wrapped, so a long text still matches.
screen() {
    if [ -n "$flag" ]; then
        tmux "$flag" "$socket" capture-pane -p -J -t "$target" -S "-$lines"
    else
        tmux capture-pane -p -J -t "$target" -S "-$lines"
    fi
}

deadline=$(($(date +%s) + limit))
while :; do
    text=$(screen) || fail "cannot read the pane $target" 3
    if printf '%s\n' "$text" | grep -q "$kind" -e "$pattern"; then
        exit 0
    fi
    [ "$(date +%s)" -lt "$deadline" ] || break
    sleep "$interval"
done

printf 'wait-for-text: not seen within %s s; the pane shows:\n%s\n' "$limit" "$text" >&2
exit 1
