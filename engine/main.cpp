// fablint-engine: options -> rows -> run -> write. docs/reference/engine.md is its contract.

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "kernel.hpp"
#include "memory.hpp"
#include "mpi_c.hpp"
#include "pattern.hpp"
#include "runner.hpp"
#include "session.hpp"
#include "team.hpp"
#include "transport.hpp"
#include "version.hpp"

namespace fablint {

namespace {

std::string list_text() {
    std::string text;
    const auto section = [&](const char* title, const auto& table) {
        text += std::string(title) + "\n";
        for (const auto& row : table) {
            char line[160];
            std::snprintf(line, sizeof line, "  %-12s %s\n", row.name, row.what);
            text += line;
        }
    };
    section("kernels", kernels());
    section("patterns", patterns());
    section("transports", transports());
    section("memories", memories());
    return text;
}

Exit act(Team& team, const std::vector<std::string>& words, const std::string& program) {
    const Options options = parse_command_line(words);
    std::string text;
    if (options.action == Options::Action::help) text = help_text();
    if (options.action == Options::Action::version) text = std::string("fablint-engine ") + version + "\n";
    if (options.action == Options::Action::list) text = list_text();
    if (options.action != Options::Action::run) {
        if (team.rank() == 0) std::fputs(text.c_str(), stdout);
        return Exit::done;
    }
    std::vector<std::string> command = words;
    command.insert(command.begin(), program);
    return measure(team, options, command);
}

extern "C" void on_signal(int) { request_stop(); }

}  // namespace

}  // namespace fablint

int main(int argc, char** argv) {
    using namespace fablint;
    int threads = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    Exit status = Exit::internal;
    std::string message;  // printed outside the handlers: SMPI allows no MPI call inside one
    bool alone = false;   // this rank failed by itself, the others do not know
    {
        Team team(wall_clock());
        try {
            status = act(team, {argv + 1, argv + argc}, argv[0]);
        } catch (const Error& error) {
            status = error.status();
            if (team.rank() == 0) message = error.what();
        } catch (const std::exception& error) {
            message = std::string("internal error: ") + error.what();
            alone = true;
        }
        if (!message.empty()) std::fprintf(stderr, "fablint-engine: error: %s\n", message.c_str());
        if (alone) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Exit::internal));
    }
    MPI_Finalize();
    return static_cast<int>(status);
}
