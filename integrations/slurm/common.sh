# What healthcheck, prolog and epilog share; sh of POSIX. See README.md in this folder.
#
# `drain_reason` is set only if preflight reported a fault of this host in its JSON output. A failure of fablint itself
# (not installed, broken Python, time limit, full disk) leaves it empty, whatever the exit code: it never drains a host.

FABLINT=/opt/fablint/bin/fablint      # the program
FABLINT_HOME=/var/lib/fablint         # readings of counters and the last result; only root can read it
FABLINT_TIME_LIMIT=40                 # seconds; Slurm ends a HealthCheckProgram after 60
FABLINT_MAX_AGE=60                    # seconds for which the prolog uses the result of the last health check
FABLINT_SITE_FILE=                    # site.toml of `fablint preflight --learn`, if there is one
FABLINT_PROMETHEUS=                   # file for the textfile collector, such as /var/lib/node_exporter/fablint.prom
FABLINT_NODE=${SLURMD_NODENAME:-$(uname -n)}
FABLINT_NODE=${FABLINT_NODE%%.*}

settings=${FABLINT_SETTINGS:-/etc/fablint/slurm.sh}
if [ -r "$settings" ] && sh -n "$settings" 2>/dev/null; then
    . "$settings"
fi
export FABLINT_HOME
export SLURM_SCRIPT_CONTEXT="${SLURM_SCRIPT_CONTEXT:-prolog_health}"  # fablint then examines this host only
umask 077
result=$FABLINT_HOME/last-preflight-$FABLINT_NODE.json  # FABLINT_HOME may be on a file system that nodes share

log() {
    logger -t fablint -- "$1" 2>/dev/null || :
}

# examine: run preflight and replace the last result; fails if preflight did not end with a result.
examine() {
    mkdir -p "$FABLINT_HOME" 2>/dev/null || { log "cannot write $FABLINT_HOME"; return 1; }
    part=$result.$$
    set -- --json
    [ -z "$FABLINT_SITE_FILE" ] || set -- "$@" --site "$FABLINT_SITE_FILE"
    [ -z "$FABLINT_PROMETHEUS" ] || set -- "$@" --prometheus "$FABLINT_PROMETHEUS"
    timeout -k 5 "$FABLINT_TIME_LIMIT" "$FABLINT" preflight -q "$@" >"$part" 2>"$part.log" </dev/null
    code=$?
    case $code in
    0 | 1 | 3)
        mv -f "$part" "$result" && rm -f "$part.log"
        ;;
    *)
        log "preflight ended with status $code: $(head -c 200 "$part.log" 2>/dev/null)"
        rm -f "$part" "$part.log"
        return 1
        ;;
    esac
}

# recent: is the last result younger than FABLINT_MAX_AGE?
recent() {
    then=$(stat -c %Y "$result" 2>/dev/null) || return 1
    age=$(($(date +%s) - then))
    [ "$age" -ge 0 ] && [ "$age" -lt "$FABLINT_MAX_AGE" ]
}

# judge: set drain_reason from the last result. `fablint act` reads the JSON and prints one command for each drained host;
# the command is not executed: node and reason are taken from it.
judge() {
    drain_reason=
    line=$(timeout 20 "$FABLINT" act -q "$result" --drain --scheduler slurm 2>/dev/null </dev/null) || return 0
    case $line in
    "scontrol update NodeName=$FABLINT_NODE State=DRAIN Reason="*) ;;
    "scontrol update NodeName="*)
        log "preflight reports another host than $FABLINT_NODE: set FABLINT_NODE in $settings"
        return 0
        ;;
    *) return 0 ;;
    esac
    reason=${line#* State=DRAIN Reason=}
    reason=${reason#\'}
    reason=${reason%\'}
    case $reason in
    *[!\ -~]* | *[\'\"\\\`]*) reason="preflight (fablint)" ;;
    esac
    drain_reason=$reason
}
