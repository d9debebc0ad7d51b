#!/bin/sh
# The engine's own tests: without MPI, and with it at 1, 2, 3 and 5 ranks for every library in FABLINT_TEST_MPI (suffixes
# of Debian's wrappers, such as "openmpi mpich"; default: the mpicxx on the PATH). With the first one under the sanitizers.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)
failed=0
passed=0
sanitize=1  # with the next one the same code would be compiled and looked at again

check() {
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $*"; fi
}

for mpi in ${FABLINT_TEST_MPI:-default}; do
    case $mpi in default) suffix= ;; *) suffix=.$mpi ;; esac
    build=../build/engine-$mpi
    echo "== engine with mpicxx$suffix"
    make -s -j"$jobs" CXX="mpicxx$suffix" WERROR=1 SANITIZE=$sanitize BUILD="$build" tests
    launch="mpiexec$suffix"
    if "$launch" --version 2>&1 | grep -q "Open MPI\|OpenRTE"; then
        launch="$launch --oversubscribe"
        if [ "$(id -u)" = 0 ]; then launch="$launch --allow-run-as-root"; fi
    fi
    check "$build/unit_tests"
    # Leaks: MPI libraries keep memory until the end of the process.
    for ranks in 1 2 3 5; do
        check env ASAN_OPTIONS=detect_leaks=0 $launch -n $ranks "$build/mpi_tests"
    done
    sanitize=
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
