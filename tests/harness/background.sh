# Functions for scripts that run a program in the background. To be sourced.
#
# start_background PATTERN COMMAND...   starts it; sets `address` to the first match of PATTERN in what it
#                                       writes to standard error. Fails if it exits or prints no match in time.
# stop_background                       stops it. Fails if it had exited by itself, or a thread of it panicked
#                                       with another message than EXPECTED_PANIC.
#
# A script that exits early stops it as well, with the exit status of the script.

background_pid=
background_log=

start_background() {
    local pattern=$1 deadline
    shift
    background_log=$(mktemp)
    trap 'clean_up_background "$?"' EXIT
    "$@" 2>"$background_log" &
    background_pid=$!
    deadline=$((SECONDS + ${BACKGROUND_PATIENCE:-60}))
    address=
    while true; do
        # Checked before the log is read, so that the last output is not missed.
        local lives=yes
        kill -0 "$background_pid" 2>/dev/null || lives=
        address=$(sed -nE "s#.*($pattern).*#\1#p" "$background_log" | sed -n 1p)
        [ -z "$address" ] || return 0
        if [ -z "$lives" ]; then
            background_failed "ended before it was ready: $*"
            return 1
        fi
        if [ "$SECONDS" -ge "$deadline" ]; then
            background_failed "was not ready in time: $*"
            return 1
        fi
        sleep 0.1
    done
}

stop_background() {
    if ! kill -0 "$background_pid" 2>/dev/null; then
        background_failed "ended during the tests"
        return 1
    fi
    kill "$background_pid"
    wait "$background_pid" || [ $? -ge 128 ] || {
        background_failed "did not end well"
        return 1
    }
    background_pid=
    if ! awk -v expected="${EXPECTED_PANIC:-}" '
        /panicked at/ { message = ""; getline message; if (expected == "" || message != expected) found = 1 }
        END { exit found }
    ' "$background_log"; then
        background_failed "panicked"
        return 1
    fi
}

background_failed() {
    echo "the program in the background $1" >&2
    cat "$background_log" >&2
}

clean_up_background() {
    if [ -n "$background_pid" ]; then
        kill "$background_pid" 2>/dev/null || :
    fi
    rm -f "$background_log"
    exit "$1"
}
