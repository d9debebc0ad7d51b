// fablint-engine: options -> rows -> run -> write. docs/reference/engine.md is its contract.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "base/mpi_c.hpp"
#include "base/version.hpp"
#include "measure/runner.hpp"
#include "measure/session.hpp"
#include "ranks/rank_group.hpp"
#include "ranks/thread_level.hpp"
#include "spec/listing.hpp"

namespace fablint {

namespace {

// MPI needs the thread level at its start, when only the command line is known. Its errors are reported later.
bool wants_threads(const std::vector<std::string>& words) {
    bool threads = false;
    attempt([&] {
        const Options options = parse_command_line(words);
        threads = options.threads || std::any_of(options.rows.begin(), options.rows.end(), [](const RowOptions& row) {
                      return row.kernel_info().needs(capability::thread_lanes);
                  });
    });
    return threads;
}

// If the launcher's PMI does not match the MPI library, every rank is rank 0 of an MPI_COMM_WORLD of its own.
void check_ranks(const RankGroup& rank_group, int expected) {
    if (expected == 0 || rank_group.size() == expected) return;
    const std::string counted = std::to_string(rank_group.size()) +
                                (rank_group.size() == 1 ? " rank of " : " ranks of ") + std::to_string(expected) +
                                (rank_group.size() == 1 ? " was started" : " were started");
    throw usage_error(counted +
                      ": the launcher's PMI is not that of this MPI library: use the library's own mpiexec, or srun "
                      "with another --mpi=TYPE (srun --mpi=list)");
}

Exit execute(RankGroup& rank_group, const std::vector<std::string>& words, const std::string& program) {
    const Options options = parse_command_line(words);
    check_ranks(rank_group, options.expect_ranks);
    std::string text;
    if (options.help) text = help_text();
    if (options.version) text = std::string("fablint-engine ") + engine_version + "\n";
    if (options.list) text = listing() + "\n";
    if (!text.empty()) {
        if (rank_group.rank() == 0) std::fputs(text.c_str(), stdout);
        return Exit::done;
    }
    std::vector<std::string> command = words;
    command.insert(command.begin(), program);
    return measure(rank_group, options, command);
}

extern "C" void on_signal(int) { request_stop(); }

}  // namespace

}  // namespace fablint

int main(int argc, char** argv) {
    using namespace fablint;
    start_mpi(argc, argv, wants_threads({argv + 1, argv + argc}));
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    std::signal(SIGUSR2,
                on_signal);  // srun and Open MPI's mpirun forward this signal; at the other two they end their ranks
    Exit status = Exit::internal;
    std::string message;    // printed outside the handlers: SMPI allows no MPI call inside one
    bool isolated = false;  // the other ranks do not know of the failure
    {
        RankGroup rank_group(wall_clock());
        try {
            status = execute(rank_group, {argv + 1, argv + argc}, argv[0]);
        } catch (const Error& error) {
            status = error.status();
            if (rank_group.rank() == 0) message = error.what();
        } catch (const std::exception& error) {
            message = std::string("internal error: ") + error.what();
            isolated = true;
        }
        if (!message.empty()) std::fprintf(stderr, "fablint-engine: error: %s\n", message.c_str());
        if (isolated) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Exit::internal));
    }
    MPI_Finalize();
    return static_cast<int>(status);
}
