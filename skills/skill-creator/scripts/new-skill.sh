#!/bin/sh
# Make the folder of a new skill: SKILL.md with valid frontmatter, and optional sub-folders.
# Never overwrites. Exit: 0 made, 1 refused or failed, 2 wrong usage.
set -eu

usage() {
    cat <<'USAGE'
usage: new-skill.sh -d DESCRIPTION [-w DIRS] NAME PARENT
  NAME            1 to 64 characters: a-z, 0-9 and single hyphens, none at either end
  PARENT          an existing folder, such as <workspace>/skills
  -d DESCRIPTION  one line, at most 1024 characters: what it does, when to use it, when not
  -w DIRS         sub-folders to make, separated by commas: scripts, references, assets
USAGE
}

refuse() {
    printf 'new-skill: %s\n' "$1" >&2
    exit 1
}

description='' wanted=''
while getopts d:w:h option; do
    case $option in
        d) description=$OPTARG ;;
        w) wanted=$OPTARG ;;
        h) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 2 ] || { usage >&2; exit 2; }
name=$1 parent=$2

# The name rules of the Agent Skills standard. Letters are spelt out because ranges depend on the locale.
case $name in
    '') refuse 'the name is empty' ;;
    *[!abcdefghijklmnopqrstuvwxyz0123456789-]*) refuse "only a-z, 0-9 and hyphens may be in a name: $name" ;;
    -* | *-) refuse "a name may not begin or end with a hyphen: $name" ;;
    *--*) refuse "a name may not contain two hyphens in a row: $name" ;;
esac
[ "${#name}" -le 64 ] || refuse "the name has ${#name} characters; 64 is the limit"

case $description in *[![:space:]]*) ;; *) refuse 'a description is needed (-d): models choose a skill by it' ;; esac
[ "$(printf '%s' "$description" | tr -d '[:cntrl:]')" = "$description" ] ||
    refuse 'the description must be one line without control characters'
length=$(printf '%s' "$description" | wc -m | tr -d ' ')
[ "$length" -le 1024 ] || refuse "the description has $length characters; 1024 is the limit"

folders=$(printf '%s' "$wanted" | tr ',' ' ')
for folder in $folders; do
    case $folder in
        scripts | references | assets) ;;
        *) refuse "unknown sub-folder: $folder (scripts, references, assets)" ;;
    esac
done

[ -d "$parent" ] || refuse "no such folder: $parent"
target=${parent%/}/$name
if [ -e "$target" ] || [ -L "$target" ]; then
    refuse "it exists already: $target"
fi
mkdir "$target" || refuse "cannot make $target"
for folder in $folders; do
    mkdir -p "$target/$folder"
done

# In a double-quoted YAML string only the backslash and the double quote need care.
quoted=$(printf '%s' "$description" | sed 's/[\\"]/\\&/g')
label=$name
case $name in true | false | null | [0123456789]*) label="\"$name\"" ;; esac # not a boolean or a number
cat > "$target/SKILL.md" <<SKILL
---
name: $label
description: "$quoted"
---

# $name

## Use it

- TODO: two or three things a user would say.

## Do not use it

- TODO: the near misses, and what to use for them.

## Commands

TODO: commands that were run and work, with the shape of their output.

## When it fails

TODO: error, meaning, what to do.
SKILL
printf '%s\n' "$target/SKILL.md"
