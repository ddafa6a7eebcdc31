# Put in front of a guest's script. Every check prints one line: `ok NAME` or `failed NAME: what it said`, where a
# carriage return is for each line break.

# check NAME COMMAND...: the command succeeds. The lines that begin with `measured ` are shown.
check() {
    check_name=$1
    shift
    if check_said=$("$@" 2>&1); then
        echo "ok $check_name"
        echo "$check_said" | grep '^measured ' || :
    else
        echo "failed $check_name: $(echo "$check_said" | tr '\n' '\r')"
    fi
}

# pings NAMESPACE ADDRESS: an answer comes within ten seconds.
pings() {
    nsenter --net="/run/netns/$1" busybox ping -c 1 -W 10 "$2"
}

# silent NAMESPACE ADDRESS: no answer comes within two seconds.
silent() {
    ! nsenter --net="/run/netns/$1" busybox ping -c 1 -W 2 "$2"
}

# passes PROGRAM TEST: the test program has this test, which may be ignored elsewhere, and it passes here.
passes() {
    passes_said=$("$1" --include-ignored --exact --test-threads=1 --show-output "$2" 2>&1)
    passes_status=$?
    echo "$passes_said"
    [ $passes_status = 0 ] && echo "$passes_said" | grep -q '^test result: ok. 1 passed'
}
