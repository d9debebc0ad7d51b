// latency_mp: half a round trip while processes forked from both ends live, as osu_latency_mp. A fork is a risk for
// memory that the network card knows by its physical address: parent and child share pages until one writes, then the
// writer, often the parent, gets other pages than those that the card reads and writes. OSU's children sleep for two
// seconds and have ended for most of the measurement; here new children live throughout every order, and with
// --validate the buffers are written after the fork, so that stale pages are detected.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "kernels/kernel.hpp"

namespace fablint {

namespace {

// Idle child processes, which hold a copy of this process's memory. They end with end() or with this process.
class Children {
  public:
    Children() = default;
    ~Children() { end(); }
    Children(const Children&) = delete;
    Children& operator=(const Children&) = delete;

    void begin(int count) {
        if (count == 0) return;
        if (pipe(pipe_.data()) != 0) fail();
        children_.reserve(static_cast<std::size_t>(count));  // no allocation between two forks
        const pid_t parent = getpid();
        for (int i = 0; i < count; ++i) {
            const pid_t child = fork();
            if (child == 0) live(parent);
            if (child < 0) fail();
            children_.push_back(child);
        }
    }

    void end() {
        for (int& side : pipe_) {
            if (side >= 0) close(side);
            side = -1;
        }
        for (const pid_t child : children_)
            while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
            }
        children_.clear();
    }

  private:
    // In the child: only calls that are safe after the fork of a process with threads, none of MPI, and no destructor.
    [[noreturn]] void live(pid_t parent) const {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(0);  // the parent ended before the call
        close(pipe_[1]);
        touch_own_memory();
        char nothing = 0;
        while (read(pipe_[0], &nothing, 1) < 0 && errno == EINTR) {  // until the parent closes its side
        }
        _exit(0);
    }

    // Writes to pages of the child's stack, so that the child has memory of its own. The message buffers are not
    // touched: MPI may have excluded them (MADV_DONTFORK).
    static void touch_own_memory() {
        std::array<volatile char, 1 << 16> block;
        for (std::size_t at = 0; at < block.size(); at += 1024) block[at] = 1;
    }

    // Only this rank fails, so this is not an Error, which is the same on all ranks: main() ends the run.
    [[noreturn]] static void fail() {
        throw std::system_error(errno, std::generic_category(),
                                "latency_mp cannot fork, choose fewer --workers or allow more processes");
    }

    std::array<int, 2> pipe_{-1, -1};
    std::vector<pid_t> children_;
};

class LatencyProcesses : public Kernel {
  public:
    explicit LatencyProcesses(const KernelOptions& options)
        : Kernel(round_trip_traits()),
          plain_(make_latency(options)),
          senders_(options.workers.senders),
          receivers_(options.workers.receivers) {}

    // --workers includes the measuring process.
    void arm(const Endpoint&, bool leads, std::int64_t) override {
        leads_ = leads;
        just_forked_ = true;
        children_.begin((leads ? senders_ : receivers_) - 1);
    }
    void disarm(const Endpoint&, bool) override { children_.end(); }

    // An untimed round trip: after a fork the first one copies the pages that MPI writes to.
    void align(const Endpoint& end) override {
        if (!just_forked_) return;
        just_forked_ = false;
        leads_ ? lead(end, 1) : follow(end, 1);
    }
    void lead(const Endpoint& end, std::int64_t repetitions) override { plain_->lead(end, repetitions); }
    void follow(const Endpoint& end, std::int64_t repetitions) override { plain_->follow(end, repetitions); }

  private:
    std::unique_ptr<Kernel> plain_;
    int senders_, receivers_;
    bool leads_ = false;
    bool just_forked_ = false;
    Children children_;
};

}  // namespace

std::unique_ptr<Kernel> make_latency_mp(const KernelOptions& options) {
    return std::make_unique<LatencyProcesses>(options);
}

}  // namespace fablint
