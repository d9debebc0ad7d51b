#!/bin/sh
# The engine's own tests, for the MPI libraries in FABLINT_TEST_MPI (suffixes of Debian's wrappers, such as "openmpi mpich";
# default: the mpicxx on the PATH).
#
#     run.sh quick   the first library without sanitizers, and no case of the suite "long"
#     run.sh long    every library under the sanitizers; the first one with all cases
#     run.sh unit    the unit tests of quick, which need no launcher
#     run.sh aarch64 the unit tests of an engine without MPI, cross-compiled for aarch64 and run by qemu-aarch64
#
# Unit tests call no MPI library, and run with the first one. So do 8 ranks and the suite "long": MPICH's ranks wait without
# yielding, for minutes on 2 CPUs, and tests/engine/test_every_row.py has 8 of each library, default windows and threads.
#
# With --list the programs are printed that would be run: library, build, program, ranks, cases.
set -eu
cd "$(dirname "$0")/.."
selection=${1:-}
list=${2:-}
libraries=${FABLINT_TEST_MPI:-default}
target=tests
case $selection in
    quick) libraries=${libraries%% *} kind=plain sanitize= ;;
    long) kind=sanitized sanitize=1 ;;
    unit) libraries=${libraries%% *} kind=plain sanitize= target=unit ;;
    aarch64) libraries= ;;
    *) echo "run.sh quick|long|unit|aarch64 [--list]" >&2 && exit 2 ;;
esac
first=${libraries%% *}
failed=0
passed=0

check() {
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: $*"; fi
}

choose_cases() {
    rank_counts="1 2 3 5" cases="all but long" excluded=--test-suite-exclude=long
    case $1-$kind in "$first-sanitized") rank_counts="$rank_counts 8" cases=all excluded= ;; esac
    [ "$selection" != unit ] || rank_counts=
}

list_programs() {
    choose_cases "$1"
    [ "$1" != "$first" ] || echo "$1 $kind unit_tests 1 $cases"
    for ranks in $rank_counts; do echo "$1 $kind mpi_tests $ranks $cases"; done
}

run_programs() {
    choose_cases "$1"
    case $1 in default) suffix= ;; *) suffix=.$1 ;; esac
    build=../build/engine-$1-$kind
    echo "== engine with mpicxx$suffix, $kind"
    MAKEFLAGS= make -s -j"$(nproc)" CXX="mpicxx$suffix" WERROR=1 SANITIZE=$sanitize BUILD="$build" "$target"
    launch="mpiexec$suffix"
    if "$launch" --version 2>&1 | grep -q "Open MPI\|OpenRTE"; then
        launch="$launch --oversubscribe"
        if [ "$(id -u)" = 0 ]; then launch="$launch --allow-run-as-root"; fi
    fi
    [ "$1" != "$first" ] || check "$build/unit_tests" $excluded
    # MPICH uses UCX: its ranks yield their CPUs while they wait (tests/fakes/yielding_ucx.cpp).
    preloaded=
    if ldd "$build/mpi_tests" | grep -q libucp; then preloaded=LD_PRELOAD=$PWD/$build/fake/libyielding_ucx.so; fi
    # Leaks: MPI libraries keep memory until the end of the process. Order: a preloaded library comes before the sanitizer.
    for ranks in $rank_counts; do
        check env ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 \
            $launch -n "$ranks" env $preloaded "$build/mpi_tests" $excluded
    done
}

# Excluded: the kernel that qemu imitates does not list sockets.
run_aarch64() {
    command -v aarch64-linux-gnu-g++ qemu-aarch64 >/dev/null || {
        echo "not tested for aarch64: install g++-aarch64-linux-gnu and qemu-user" && return
    }
    build=../build/engine-aarch64
    MAKEFLAGS= make -s -j"$(nproc)" CXX=aarch64-linux-gnu-g++ FAKES_CXX=aarch64-linux-gnu-g++ WITHOUT_MPI=1 WERROR=1 \
        OPTIMISE=-O1 BUILD="$build" engine unit fake_drivers
    check qemu-aarch64 -L /usr/aarch64-linux-gnu "$build/unit_tests" --test-suite-exclude=long \
        --test-case-exclude="the connections of this process are found*"
}

for library in $libraries; do
    if [ "$list" = --list ]; then list_programs "$library"; else run_programs "$library"; fi
done
[ "$list" = --list ] && exit
[ "$selection" != aarch64 ] || run_aarch64
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
