// fablint-engine: options -> rows -> run -> write. docs/reference/engine.md is its contract.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/version.hpp"
#include "measure/runner.hpp"
#include "measure/service.hpp"
#include "measure/session.hpp"
#include "ranks/local_ranks.hpp"
#include "ranks/mpi_control.hpp"
#include "ranks/rank_group.hpp"
#include "ranks/rendezvous.hpp"
#include "ranks/socket_control.hpp"
#include "ranks/start_watch.hpp"
#include "spec/listing.hpp"

namespace fablint {

namespace {

// MPI needs the thread level at its start, when only the command line is known. Its errors are reported later.
Options options_before_mpi(const std::vector<std::string>& words) {
    Options options;
    attempt([&] {
        options = parse_command_line(words);
        options.threads |= std::any_of(options.rows.begin(), options.rows.end(), [](const RowOptions& row) {
            return row.kernel_info().needs(capability::thread_lanes);
        });
    });
    return options;
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

// The ranks of --rendezvous; null if MPI connects the ranks. Processes of several ranks of this host are started here,
// before any thread.
std::unique_ptr<ControlChannel> join_rendezvous(const std::vector<std::string>& words) {
    const std::string option = "--rendezvous";
    const auto names_it = [&](const std::string& word) { return word.compare(0, option.size(), option) == 0; };
    if (std::none_of(words.begin(), words.end(), names_it)) return nullptr;
    const Options options = parse_run_options(words);
    const std::vector<int> ranks = parse_ranks(options.rank);
    RendezvousOptions own = rendezvous_options(options.rendezvous, ranks.back(), options.ranks, options.join_limit_s);
    own.token = options.supervised ? read_supervisor() : read_token(options.token_file);
    check_token(own.token);
    own.rank = start_local_ranks(ranks, options.supervised, options.serve);
    return std::make_unique<SocketControl>(own);
}

// The ranks of a rendezvous measure what the command line of rank 0 requests.
std::vector<std::string> words_of_rank_0(RankGroup& rank_group, const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += word + '\0';
    text = rank_group.broadcast(text);
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size(); at += all.back().size() + 1) all.emplace_back(text.c_str() + at);
    return all;
}

// Of a run: its tables on standard output, its start and its end on standard error.
class TextReport : public RunReport {
  public:
    TextReport(const RankGroup& rank_group, bool quiet, const std::function<void()>& on_start)
        : ranks_(rank_group.size()), prints_(!quiet && rank_group.rank() == 0), on_start_(on_start) {}

    // The front end limits the time until this line, since the watchdog starts after it.
    void start() override {
        on_start_();
        if (prints_) std::fprintf(stderr, "fablint-engine: started: %d rank%s\n", ranks_, ranks_ == 1 ? "" : "s");
    }
    void table(const std::string& text) override { std::fputs(text.c_str(), stdout); }
    // What can be written is written. After this line the front end ends ranks that stay in MPI_Finalize.
    void end(Exit status, bool written) override {
        std::fflush(stdout);
        if (prints_)
            std::fprintf(stderr, "fablint-engine: ended: status %d%s\n", static_cast<int>(status),
                         written ? "" : ", not all is written");
    }

  private:
    int ranks_;
    bool prints_;
    const std::function<void()>& on_start_;
};

Exit execute(RankGroup& rank_group, const std::vector<std::string>& words, const std::string& program,
             const std::function<void()>& on_start) {
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
    TextReport report(rank_group, options.quiet, on_start);
    if (options.serve) return serve(rank_group, options, command, report);
    std::optional<Instrument> instrument;
    return measure(rank_group, options, command, report, instrument);
}

extern "C" void on_signal(int) { request_stop(); }

// The launcher mixes what it reads from the ranks, so that a line must be one write. Without a buffer, glibc 2.37 and
// later write a line in parts of 128 bytes.
void write_lines_to_stderr() {
    constexpr std::size_t longest = std::size_t{1} << 16;
    std::setvbuf(stderr, new char[longest], _IOLBF, longest);  // used until the process ends
}

}  // namespace

}  // namespace fablint

int main(int argc, char** argv) {
    using namespace fablint;
    write_lines_to_stderr();
    std::vector<std::string> words(argv + 1, argv + argc);
    Exit status = Exit::internal;
    std::string message;    // printed outside the handlers: SMPI allows no MPI call inside one
    bool isolated = false;  // the other ranks do not know of the failure
    std::unique_ptr<ControlChannel> control;
    std::optional<StartWatch> start_watch;
    if (const std::optional<Error> error = attempt([&] {
            control = join_rendezvous(words);
            if (control) return;
            const Options options = options_before_mpi(words);
            if (options.mpi_library) {
                std::puts(loaded_mpi().c_str());
                return;
            }
            start_watch.emplace();
            start_mpi(argc, argv, options.threads);
            control = make_mpi_control();
        })) {
        std::fprintf(stderr, "fablint-engine: error: %s\n", error->what());
        return static_cast<int>(error->status());
    }
    if (!control) return static_cast<int>(Exit::done);
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    std::signal(SIGUSR2,
                on_signal);  // srun and Open MPI's mpirun forward this signal; at the other two they end their ranks
    {
        const bool has_mpi = is_mpi_started();
        RankGroup rank_group(wall_clock(), std::move(control));
        try {
            if (!has_mpi) words = words_of_rank_0(rank_group, words);
            status = execute(rank_group, words, argv[0], [&start_watch] { start_watch.reset(); });
        } catch (const Error& error) {
            status = error.status();
            if (rank_group.rank() == 0) message = error.what();
        } catch (const std::exception& error) {
            message = std::string("internal error: ") + error.what();
            isolated = true;
        }
        if (!message.empty()) std::fprintf(stderr, "fablint-engine: error: %s\n", message.c_str());
        if (isolated) rank_group.control().abort(static_cast<int>(Exit::internal));
    }
    end_mpi();
    return static_cast<int>(status);
}
