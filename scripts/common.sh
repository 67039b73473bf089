# Sourced by the scripts beside it: where we are, how we speak, what was done already.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

state=.cache/setup # what earlier set-ups found and built; safe to delete
mkdir -p "$state"
# `ip` lives in sbin, which an ordinary user's PATH may lack.
case :$PATH: in *:/usr/sbin:*) ;; *) PATH=$PATH:/usr/sbin:/sbin ;; esac

# Java asks the password database where home is, not HOME: where that is no place to write, Maven gets one that is.
usable_home() { [ -d "$1" ] && [ -w "$1" ]; }
if ! usable_home "$(getent passwd "$(id -u)" | cut -d: -f6)"; then
    usable_home "${HOME:-}" || export HOME=$PWD/$state
    export MAVEN_OPTS="-Duser.home=$HOME ${MAVEN_OPTS:-}"
fi

say() { printf '%s\n' "$*" >&2; }

# stop WHAT FIX: the machine is not fit; nothing was started.
stop() {
    say "error: $1"
    say "  fix: $2"
    exit 3
}

# digest FILE...: one hash over names and contents.
digest() { sha256sum -- "$@" | sha256sum | cut -d' ' -f1; }

# at_least VERSION WANTED
at_least() { printf '%s\n%s\n' "$2" "$1" | sort -C -V; }
