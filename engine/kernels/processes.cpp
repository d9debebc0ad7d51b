// latency_mp: half a round trip while processes forked from both ends live, as osu_latency_mp. What a fork endangers is
// memory that the network card knows by its physical address: parent and child share pages until one writes, then the
// writer, often the parent, gets other pages than the card reads and writes. OSU's children sleep for two seconds and
// are gone for most of the measurement; here fresh ones live throughout every order, and with --validate the buffers
// are written after the fork, so stale pages are found out.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "kernels/kernel.hpp"
#include "spec/row.hpp"

namespace fablint {

namespace {

// Processes that live until end() and do nothing but hold their copy of this one's memory. They are gone when it ends,
// however it ends.
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
        if (getppid() != parent) _exit(0);  // it died before we could ask
        close(pipe_[1]);
        touch_own_memory();
        char nothing = 0;
        while (read(pipe_[0], &nothing, 1) < 0 && errno == EINTR) {  // until the parent closes its side
        }
        _exit(0);
    }

    // Writes to pages of the child's stack: it has memory of its own and is no mere entry in the process table. It
    // leaves the message buffers alone: MPI may have kept them from it (MADV_DONTFORK).
    static void touch_own_memory() {
        std::array<volatile char, 1 << 16> block;
        for (std::size_t at = 0; at < block.size(); at += 1024) block[at] = 1;
    }

    // One rank alone fails here, so this is no Error, which all ranks would have to agree on: main() ends the run.
    [[noreturn]] static void fail() {
        throw std::system_error(errno, std::generic_category(),
                                "latency_mp cannot fork, choose fewer --workers or allow more processes");
    }

    std::array<int, 2> pipe_{-1, -1};
    std::vector<pid_t> children_;
};

class LatencyProcesses : public Kernel {
  public:
    explicit LatencyProcesses(const RowOptions& row)
        : plain_(make_latency(row)), senders_(row.workers.senders), receivers_(row.workers.receivers) {}
    int messages(int window) const override { return plain_->messages(window); }
    std::optional<Content> at_leader() const override { return plain_->at_leader(); }

    // --workers counts the measuring process, which is there already.
    void arm(const End&, bool leads, std::int64_t) override {
        leads_ = leads;
        just_forked_ = true;
        children_.begin((leads ? senders_ : receivers_) - 1);
    }
    void disarm(const End&, bool) override { children_.end(); }

    // A round trip that nobody times: after a fork the first one copies the pages that MPI writes to.
    void align(const End& end) override {
        if (!just_forked_) return;
        just_forked_ = false;
        leads_ ? lead(end, 1) : follow(end, 1);
    }
    void lead(const End& end, std::int64_t repetitions) override { plain_->lead(end, repetitions); }
    void follow(const End& end, std::int64_t repetitions) override { plain_->follow(end, repetitions); }

  private:
    std::unique_ptr<Kernel> plain_;
    int senders_, receivers_;
    bool leads_ = false;
    bool just_forked_ = false;
    Children children_;
};

}  // namespace

std::unique_ptr<Kernel> make_latency_mp(const RowOptions& row) { return std::make_unique<LatencyProcesses>(row); }

}  // namespace fablint
