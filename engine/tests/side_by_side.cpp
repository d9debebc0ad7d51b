// For benchmarks/engine_speed.py: the engine's kernels against bare MPI loops, alternating within one process pair, so
// that both see the same machine. Prints kernel, bytes, messages in flight, seconds per message of the engine and of
// the bare loop, one line per repetition.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "../meeting.hpp"
#include "../mpi_c.hpp"
#include "../options.hpp"
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

using Buffer = std::unique_ptr<char, decltype(&std::free)>;

Buffer page_aligned(std::size_t bytes) {
    const std::size_t page = 4096;
    auto* data = static_cast<char*>(std::aligned_alloc(page, (bytes + page - 1) / page * page));
    std::fill(data, data + bytes, 'a');
    return {data, &std::free};
}

// What somebody would write who wants this one figure and nothing else: rank 0 with rank 1.
class BareLoop {
  public:
    BareLoop(const Case& what, int rank)
        : batch_(what.batch),
          window_(what.window),
          bytes_(static_cast<int>(what.bytes)),
          rank_(rank),
          send_(page_aligned(what.bytes * static_cast<std::size_t>(what.window))) {}
    virtual ~BareLoop() = default;

    // Of `samples` samples.
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
        return times[samples / 2] / (static_cast<double>(batch_) * messages());
    }

  protected:
    virtual void batch() = 0;
    virtual int messages() const { return window_; }
    std::size_t offset(int slot) const { return static_cast<std::size_t>(bytes_) * static_cast<std::size_t>(slot); }

    int batch_, window_, bytes_, rank_;
    Buffer send_;
};

class PingPong : public BareLoop {
  public:
    PingPong(const Case& what, int rank) : BareLoop(what, rank), receive_(page_aligned(what.bytes)) {}

  private:
    int messages() const override { return 2; }
    void batch() override {
        for (int i = 0; i < batch_; ++i) {
            if (rank_ == 0) MPI_Send(send_.get(), bytes_, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(receive_.get(), bytes_, MPI_BYTE, 1 - rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank_ == 1) MPI_Send(send_.get(), bytes_, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }

    Buffer receive_;  // apart, as in OSU: what comes in must not dirty what goes out
};

class Stream : public BareLoop {
  public:
    Stream(const Case& what, int rank) : BareLoop(what, rank), requests_(static_cast<std::size_t>(what.window)) {}

  private:
    void batch() override {
        char acknowledgement = 0;
        for (int i = 0; i < batch_; ++i) {
            for (int slot = 0; slot < window_; ++slot) {
                MPI_Request& request = requests_[static_cast<std::size_t>(slot)];
                char* data = send_.get() + offset(slot);
                if (rank_ == 0) MPI_Isend(data, bytes_, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
                if (rank_ == 1) MPI_Irecv(data, bytes_, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
            }
            MPI_Waitall(window_, requests_.data(), MPI_STATUSES_IGNORE);
            if (rank_ == 0) MPI_Recv(&acknowledgement, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank_ == 1) MPI_Send(&acknowledgement, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }

    std::vector<MPI_Request> requests_;
};

// Rank 0 in the window of rank 1, in a lock that is held.
class BareWindow : public BareLoop {
  public:
    BareWindow(const Case& what, int rank) : BareLoop(what, rank) {
        void* base = nullptr;
        const std::size_t bytes = what.bytes * static_cast<std::size_t>(what.window);
        MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &memory_);
        std::fill_n(static_cast<char*>(base), bytes, 'b');
        if (rank_ == 0) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, memory_);
    }
    ~BareWindow() override {
        if (rank_ == 0) MPI_Win_unlock(1, memory_);
        MPI_Win_free(&memory_);
    }

  protected:
    MPI_Win memory_ = MPI_WIN_NULL;
};

// Start::start is MPI_Put or MPI_Get, known when this is compiled.
template <typename Start>
class BareAccess : public BareWindow {
  public:
    using BareWindow::BareWindow;

  private:
    void batch() override {
        if (rank_ != 0) return;
        for (int i = 0; i < batch_; ++i) {
            Start::start(send_.get(), bytes_, memory_);
            MPI_Win_flush(1, memory_);
        }
    }
};

struct Put {
    static void start(void* data, int bytes, MPI_Win window) {
        MPI_Put(data, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
    }
};

struct Get {
    static void start(void* data, int bytes, MPI_Win window) {
        MPI_Get(data, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
    }
};

template <typename Loop>
std::unique_ptr<BareLoop> make_bare(const Case& what, int rank) {
    return std::make_unique<Loop>(what, rank);
}

struct BareMaker {
    const char* name;
    std::unique_ptr<BareLoop> (*make)(const Case& what, int rank);
};

const std::vector<BareMaker>& bare_loops() {
    static const std::vector<BareMaker> table = {{"latency", make_bare<PingPong>},
                                                 {"bandwidth", make_bare<Stream>},
                                                 {"put_latency", make_bare<BareAccess<Put>>},
                                                 {"get_latency", make_bare<BareAccess<Get>>}};
    return table;
}

// The engine as it measures a row, with buffers that last as long as the bare loop's.
class EngineLoop {
  public:
    EngineLoop(Team& team, const Case& what)
        : team_(team),
          row_(parse_plan(line(what), "side by side").at(0)),
          transport_(transport_named(row_.transport).make()),
          memory_(memory_named(row_.memory).make()),
          meeting_(team, wall_clock(), 25e-9, row_, *transport_, *memory_, Meeting::Crowd{}) {}

    // Of rank 0's samples; nothing on rank 1.
    double median() {
        const Seat seat{Seat::Role::pair, {1 - team_.rank()}, 0, -1};
        const Cell cell = meeting_.meet(seat, team_.rank() == 0, 0);
        return cell.sizes.empty() ? 0.0 : static_cast<double>(cell.sizes.front().median);
    }

  private:
    static std::string line(const Case& what) {
        std::string line = std::string(what.kernel) + " --directions forward --warmup 2 --sizes " +
                           std::to_string(what.bytes) + " --samples " + std::to_string(samples) + " --batch " +
                           std::to_string(what.batch);
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
    const std::vector<Case> cases = {{"latency", 8, 1000, 1},       {"latency", 1 << 10, 1000, 1},
                                     {"latency", 64 << 10, 200, 1}, {"latency", 1 << 20, 20, 1},
                                     {"bandwidth", 8, 100, 64},     {"bandwidth", 1 << 20, 1, 16},
                                     {"put_latency", 8, 10000, 1},  {"put_latency", 1 << 20, 20, 1},
                                     {"get_latency", 8, 10000, 1},  {"get_latency", 1 << 20, 20, 1}};
    {
        Team team(wall_clock());
        for (const Case& what : cases) {
            const auto bare = row_named(bare_loops(), what.kernel, "bare loop").make(what, team.rank());
            EngineLoop engine(team, what);
            for (int i = 0; i < repetitions; ++i) {
                double bare_s = i % 2 == 0 ? bare->median() : 0.0;
                const double engine_s = engine.median();
                if (i % 2 == 1) bare_s = bare->median();
                if (team.rank() == 0)
                    std::printf("%s %zu %d %.12g %.12g\n", what.kernel, what.bytes, what.window, engine_s, bare_s);
            }
        }
    }
    MPI_Finalize();
    return 0;
}
