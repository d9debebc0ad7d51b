// latency_mt: half a round trip while several threads of both ends use MPI at once, as osu_latency_mt. One repetition
// is one round trip of every sender thread; messages go to the receiver threads in turn, as in OSU. The time of a
// repetition is divided by 2 for any number of senders: half the duration of a round trip while the other senders make
// theirs. (With several senders OSU's figure is a race: the threads share one start and one end time.)
#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>

#include "kernels/kernel.hpp"

namespace fablint {

namespace {

// Threads that share the turns 0, 1, 2, ...: each begins with a turn of its own, continues by a common stride, and
// takes no turn before its release. A waiting thread yields but does not sleep: a wake-up takes longer than a message.
class WorkerPool {
  public:
    WorkerPool() = default;
    ~WorkerPool() { end(); }
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    void begin(std::int64_t turns) {
        turns_ = turns;
        released_ = 0;
        over_ = false;
    }

    void add(int first, int stride, std::function<void()> work) {
        workers_.push_back(std::make_unique<Worker>());
        Worker& worker = *workers_.back();
        worker.next = first;
        try {
            worker.thread =
                std::thread([this, &worker, stride, work = std::move(work)] { take_turns(worker, stride, work); });
        } catch (const std::system_error& error) {
            // This rank alone fails, so it is no Error, which all ranks would have to agree on: main() ends the run.
            throw std::system_error(error.code(), "latency_mt cannot start its threads, choose fewer --workers");
        }
    }

    // Allows all turns before that one.
    void release(std::int64_t turn) { released_.store(turn, std::memory_order_release); }

    // Returns when all turns before that one have been taken; rethrows the exception of a thread.
    void wait_for(std::int64_t turn) {
        for (const auto& worker : workers_)
            for (; worker->next.load(std::memory_order_acquire) < turn; std::this_thread::yield())
                if (worker->failed.load(std::memory_order_acquire)) std::rethrow_exception(worker->failure);
    }

    // Ends the threads after the released turns. Returns the exception of a thread, if any.
    std::exception_ptr end() {
        over_ = true;
        std::exception_ptr failure;
        for (const auto& worker : workers_) {
            if (worker->thread.joinable()) worker->thread.join();
            if (worker->failure) failure = worker->failure;
        }
        workers_.clear();
        return failure;
    }

  private:
    struct alignas(64) Worker {  // no two in one cache line
        std::thread thread;
        std::atomic<std::int64_t> next{0};
        std::atomic<bool> failed{false};
        std::exception_ptr failure;
    };

    void take_turns(Worker& worker, int stride, const std::function<void()>& work) {
        try {
            for (std::int64_t turn = worker.next; turn < turns_; turn += stride) {
                if (!wait_for_release(turn)) return;
                work();
                worker.next.store(turn + stride, std::memory_order_release);
            }
        } catch (...) {
            worker.failure = std::current_exception();
            worker.failed.store(true, std::memory_order_release);
        }
    }

    // Waits for the release of a turn; false if the end comes first. The flag for the end is read before the turn, so
    // that a turn that is released just before the end is taken.
    bool wait_for_release(std::int64_t turn) const {
        for (;; std::this_thread::yield()) {
            const bool over = over_.load(std::memory_order_acquire);
            if (released_.load(std::memory_order_acquire) > turn) return true;
            if (over) return false;
        }
    }

    std::vector<std::unique_ptr<Worker>> workers_;
    std::int64_t turns_ = 0;
    std::atomic<std::int64_t> released_{0};
    std::atomic<bool> over_{false};
};

// An index that advances by a fixed step modulo a number of places, without a division.
class StridedIndex {
  public:
    StridedIndex(int places, int first, int step) : places_(places), at_(first % places), step_(step % places) {}
    int at() const { return at_; }
    void turn() {
        at_ += step_;
        if (at_ >= places_) at_ -= places_;
    }

  private:
    int places_, at_, step_;
};

// The order that the threads share. Message m belongs to sender m mod S and receiver m mod R. Both process their
// messages in order of m, so that the first unfinished message is the next one of both its ends: there is no deadlock.
// Each pair of sender and receiver has a lane of its own, since a receiver may wait for a later message of a sender
// that exchanges with another receiver.
struct Exchange {
    Endpoint end;
    ThreadLanes& lanes;
    int senders, receivers;
    int lane(int sender, int receiver) const { return sender * receivers + receiver; }
};

// One turn of a sender.
class RoundTrip {
  public:
    RoundTrip(const Exchange& exchange, int sender)
        : exchange_(exchange), sender_(sender), receiver_(exchange.receivers, sender, exchange.senders) {}
    void operator()() {
        const Endpoint& end = exchange_.end;
        const int lane = exchange_.lane(sender_, receiver_.at());
        exchange_.lanes.send(lane, end.peer(), end.payload.send_slot(sender_), end.bytes);
        exchange_.lanes.receive(lane, end.peer(), end.payload.receive_slot(sender_), end.bytes);
        receiver_.turn();
    }

  private:
    Exchange exchange_;
    int sender_;
    StridedIndex receiver_;
};

// One turn of a receiver.
class Answer {
  public:
    Answer(const Exchange& exchange, int receiver, const StridedIndex& slot)
        : exchange_(exchange),
          receiver_(receiver),
          sender_(exchange.senders, receiver, exchange.receivers),
          slot_(slot) {}
    void operator()() {
        const Endpoint& end = exchange_.end;
        const int lane = exchange_.lane(sender_.at(), receiver_);
        exchange_.lanes.receive(lane, end.peer(), end.payload.receive_slot(slot_.at()), end.bytes);
        exchange_.lanes.send(lane, end.peer(), end.payload.send_slot(slot_.at()), end.bytes);
        sender_.turn();
        slot_.turn();
    }

  private:
    Exchange exchange_;
    int receiver_;
    StridedIndex sender_, slot_;
};

class LatencyThreads : public Kernel {
  public:
    explicit LatencyThreads(const KernelOptions& options)
        : Kernel(slot_per_thread(options.workers)),
          senders_(options.workers.senders),
          receivers_(options.workers.receivers),
          stepwise_(options.validate) {}

    // Receivers process the whole order, each in its own slot. With --validate they must not receive before the slot is
    // filled: they proceed repetition by repetition, and each message has the slot of its sender.
    void arm(const Endpoint& end, bool leads, std::int64_t repetitions) override {
        const Exchange exchange{end, *end.transport.thread_lanes(), senders_, receivers_};
        done_ = 0;
        workers_.begin(repetitions * senders_);
        if (leads) {
            first_sender_.emplace(exchange, 0);
            for (int sender = 1; sender < senders_; ++sender)
                workers_.add(sender, senders_, RoundTrip(exchange, sender));
            return;
        }
        for (int receiver = 0; receiver < receivers_; ++receiver) {
            const StridedIndex senders_slot(senders_, receiver, receivers_);
            const StridedIndex own_slot(receivers_, receiver, 0);
            workers_.add(receiver, receivers_, Answer(exchange, receiver, stepwise_ ? senders_slot : own_slot));
        }
        if (!stepwise_) workers_.release(repetitions * senders_);
    }
    void disarm(const Endpoint&, bool) override {
        if (const std::exception_ptr failure = workers_.end()) std::rethrow_exception(failure);
    }

    // The calling thread is the first sender.
    void lead(const Endpoint&, std::int64_t repetitions) override {
        done_ += repetitions;
        workers_.release(done_ * senders_);
        for (std::int64_t i = 0; i < repetitions; ++i) (*first_sender_)();
        workers_.wait_for(done_ * senders_);
    }
    void follow(const Endpoint&, std::int64_t repetitions) override {
        if (!stepwise_) return;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            ++done_;
            workers_.release(done_ * senders_);
            workers_.wait_for(done_ * senders_);
        }
    }

    // The messages of a repetition, one of each sender, have numbers of their own.
    void fill(const Endpoint& end, bool leads, std::int64_t first) override {
        for (int sender = 0; sender < senders_; ++sender) {
            end.payload.fill(sender, end.rank, end.peer(), first * senders_ + sender);
            end.payload.poison(sender, leads);
        }
    }
    void check(const Endpoint& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        for (int sender = 0; sender < senders_; ++sender) {
            const std::int64_t message = first * senders_ + sender;
            const auto offset = end.payload.damage(sender, end.peer(), end.rank, message);
            if (offset) damages.push_back({end.peer(), end.rank, end.bytes, message, *offset});
        }
    }

  private:
    static KernelTraits slot_per_thread(const Workers& workers) {
        KernelTraits traits;
        traits.messages = 2;
        traits.fixed_slots = std::max(workers.senders, workers.receivers);
        return traits;
    }

    int senders_, receivers_;
    bool stepwise_;
    std::int64_t done_ = 0;  // repetitions of the order
    std::optional<RoundTrip> first_sender_;
    WorkerPool workers_;
};

}  // namespace

std::unique_ptr<Kernel> make_latency_mt(const KernelOptions& options) {
    return std::make_unique<LatencyThreads>(options);
}

}  // namespace fablint
