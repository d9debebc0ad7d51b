// For benchmarks/engine_speed.py: the engine's kernels against bare MPI loops, alternating within one process pair, so
// that both see the same machine. Prints kernel, bytes, seconds per message of the engine and of the bare loop, one
// line per repetition.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "../meeting.hpp"
#include "../mpi_c.hpp"
#include "../table.hpp"

using namespace fablint;

namespace {

constexpr int samples = 5;

struct Case {
    const char* kernel;
    std::size_t bytes;
    int batch;   // repetitions per sample
    int window;  // messages per repetition in one direction
};

// What somebody would write who wants this one figure and nothing else. Returns the median of `samples` samples.
class BareLoop {
  public:
    BareLoop(const Case& what, int rank)
        : case_(what),
          rank_(rank),
          send_(aligned(what.bytes * static_cast<std::size_t>(what.window))),
          receive_(aligned(what.bytes * static_cast<std::size_t>(what.window))),
          requests_(static_cast<std::size_t>(what.window)) {}

    double median() {
        std::vector<double> times;
        batch();  // warm-up
        for (int i = 0; i < samples; ++i) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = wall_clock().now();
            batch();
            times.push_back(wall_clock().now() - begin);
        }
        std::nth_element(times.begin(), times.begin() + samples / 2, times.end());
        const int messages = case_.batch * (windowed() ? case_.window : 2);
        return times[samples / 2] / messages;
    }

  private:
    static std::unique_ptr<char, decltype(&std::free)> aligned(std::size_t bytes) {
        const std::size_t page = 4096;
        auto* data = static_cast<char*>(std::aligned_alloc(page, (bytes + page - 1) / page * page));
        std::fill(data, data + bytes, 'a');
        return {data, &std::free};
    }

    bool windowed() const { return case_.window > 1; }

    void batch() {
        for (int i = 0; i < case_.batch; ++i) {
            if (windowed()) {
                window();
            } else {
                ping_pong();
            }
        }
    }

    void ping_pong() {
        const auto bytes = static_cast<int>(case_.bytes);
        if (rank_ == 0) MPI_Send(send_.get(), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(receive_.get(), bytes, MPI_BYTE, 1 - rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank_ == 1) MPI_Send(send_.get(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }

    void window() {
        const auto bytes = static_cast<int>(case_.bytes);
        char ack = 0;
        for (int slot = 0; slot < case_.window; ++slot) {
            const std::size_t begin = case_.bytes * static_cast<std::size_t>(slot);
            MPI_Request& request = requests_[static_cast<std::size_t>(slot)];
            if (rank_ == 0) MPI_Isend(send_.get() + begin, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
            if (rank_ == 1) MPI_Irecv(receive_.get() + begin, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        }
        MPI_Waitall(case_.window, requests_.data(), MPI_STATUSES_IGNORE);
        if (rank_ == 0) MPI_Recv(&ack, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank_ == 1) MPI_Send(&ack, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }

    Case case_;
    int rank_;
    std::unique_ptr<char, decltype(&std::free)> send_,
        receive_;  // apart, as in OSU: what comes in must not dirty what goes out
    std::vector<MPI_Request> requests_;
};

// The engine as it measures a row, with buffers that last as long as the bare loop's.
class EngineLoop {
  public:
    EngineLoop(Team& team, const Case& what)
        : team_(team),
          row_(parse_plan(line(what), "side by side").at(0)),
          transport_(transport_named(row_.transport).make()),
          memory_(memory_named(row_.memory).make()),
          meeting_(team, wall_clock(), 25e-9, row_, *transport_, *memory_) {}

    double median() {
        return static_cast<double>(meeting_.meet(1 - team_.rank(), team_.rank() == 0, 0).sizes.at(0).median);
    }

  private:
    static std::string line(const Case& what) {
        std::string line = std::string(what.kernel) + " --sizes " + std::to_string(what.bytes) + " --samples " +
                           std::to_string(samples) + " --batch " + std::to_string(what.batch) + " --warmup 2";
        if (what.window > 1) line += " --window " + std::to_string(what.window);
        return line;
    }

    Team& team_;
    RowOptions row_;
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<Memory> memory_;
    Meeting meeting_;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int repetitions = argc > 1 ? std::atoi(argv[1]) : 21;
    const std::vector<Case> cases = {{"latency", 8, 1000, 1},
                                     {"latency", 1 << 10, 1000, 1},
                                     {"latency", 64 << 10, 200, 1},
                                     {"latency", 1 << 20, 20, 1},
                                     {"bandwidth", 1 << 20, 1, 16}};
    {
        Team team(wall_clock());
        for (const Case& what : cases) {
            BareLoop bare(what, team.rank());
            EngineLoop engine(team, what);
            for (int i = 0; i < repetitions; ++i) {
                double bare_s = i % 2 == 0 ? bare.median() : 0.0;
                const double engine_s = engine.median();
                if (i % 2 == 1) bare_s = bare.median();
                if (team.rank() == 0) std::printf("%s %zu %.12g %.12g\n", what.kernel, what.bytes, engine_s, bare_s);
            }
        }
    }
    MPI_Finalize();
    return 0;
}
