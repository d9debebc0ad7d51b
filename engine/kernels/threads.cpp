// latency_mt: half a round trip while several threads of both ends use MPI at once, as osu_latency_mt. One repetition
// is one round trip of every sender thread; messages go to the receiver threads in turn, as OSU's do. The time of a
// repetition is divided by 2 however many senders there are: half of what a round trip takes while the other senders
// make theirs. (With several senders OSU's own figure is a race: they share one start and one end time.)
#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>

#include "kernels/kernel.hpp"
#include "spec/row.hpp"

namespace fablint {

namespace {

// Threads that take the turns 0, 1, 2, ... between them: each begins with one of its own, goes on by the same stride,
// and takes no turn before it is let. Who waits lets others run but does not sleep: waking up takes longer than a
// message.
class Crew {
  public:
    Crew() = default;
    ~Crew() { end(); }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    void begin(std::int64_t turns) {
        turns_ = turns;
        let_ = 0;
        over_ = false;
    }

    void add(int first, int stride, std::function<void()> work) {
        places_.push_back(std::make_unique<Place>());
        Place& place = *places_.back();
        place.next = first;
        try {
            place.thread = std::thread([this, &place, stride, work = std::move(work)] { take(place, stride, work); });
        } catch (const std::system_error& error) {
            // This rank alone fails, so it is no Error, which all ranks would have to agree on: main() ends the run.
            throw std::system_error(error.code(), "latency_mt cannot start its threads, choose fewer --workers");
        }
    }

    // Turns before that one may be taken.
    void let(std::int64_t turn) { let_.store(turn, std::memory_order_release); }

    // Returns when all turns before that one have been taken; throws what a thread threw.
    void await(std::int64_t turn) {
        for (const auto& place : places_)
            for (; place->next.load(std::memory_order_acquire) < turn; std::this_thread::yield())
                if (place->failed.load(std::memory_order_acquire)) std::rethrow_exception(place->failure);
    }

    // Lets the threads take the turns that they may take, and ends them. Returns what one of them threw, if any.
    std::exception_ptr end() {
        over_ = true;
        std::exception_ptr failure;
        for (const auto& place : places_) {
            if (place->thread.joinable()) place->thread.join();
            if (place->failure) failure = place->failure;
        }
        places_.clear();
        return failure;
    }

  private:
    struct alignas(64) Place {  // no two in one cache line
        std::thread thread;
        std::atomic<std::int64_t> next{0};
        std::atomic<bool> failed{false};
        std::exception_ptr failure;
    };

    void take(Place& place, int stride, const std::function<void()>& work) {
        try {
            for (std::int64_t turn = place.next; turn < turns_; turn += stride) {
                if (!may_take(turn)) return;
                work();
                place.next.store(turn + stride, std::memory_order_release);
            }
        } catch (...) {
            place.failure = std::current_exception();
            place.failed.store(true, std::memory_order_release);
        }
    }

    // Waits for a turn; false when all is over without it. Whether it is over is asked first: a turn that is let just
    // before the end is taken, though the thread looked for it just before it was let.
    bool may_take(std::int64_t turn) const {
        for (;; std::this_thread::yield()) {
            const bool over = over_.load(std::memory_order_acquire);
            if (let_.load(std::memory_order_acquire) > turn) return true;
            if (over) return false;
        }
    }

    std::vector<std::unique_ptr<Place>> places_;
    std::int64_t turns_ = 0;
    std::atomic<std::int64_t> let_{0};
    std::atomic<bool> over_{false};
};

// Goes round so many places by a fixed step, without a division.
class Wheel {
  public:
    Wheel(int places, int first, int step) : places_(places), at_(first % places), step_(step % places) {}
    int at() const { return at_; }
    void turn() {
        at_ += step_;
        if (at_ >= places_) at_ -= places_;
    }

  private:
    int places_, at_, step_;
};

// What the threads of one order share. Message m is sender m mod S's and receiver m mod R's. Both take theirs in order
// of m, so the first message that is not over is always the next one of both its ends: nobody waits for ever. Each
// sender and receiver have a lane of their own, since a receiver may wait for a later message of a sender who talks to
// another one.
struct Exchange {
    End end;
    int senders, receivers;
    int lane(int sender, int receiver) const { return sender * receivers + receiver; }
};

// A sender's turn.
class RoundTrip {
  public:
    RoundTrip(const Exchange& exchange, int sender)
        : exchange_(exchange), sender_(sender), receiver_(exchange.receivers, sender, exchange.senders) {}
    void operator()() {
        const End& end = exchange_.end;
        const int lane = exchange_.lane(sender_, receiver_.at());
        end.transport.send_on(lane, end.peer(), end.payload.send_slot(sender_), end.bytes);
        end.transport.receive_on(lane, end.peer(), end.payload.receive_slot(sender_), end.bytes);
        receiver_.turn();
    }

  private:
    Exchange exchange_;
    int sender_;
    Wheel receiver_;
};

// A receiver's turn.
class Answer {
  public:
    Answer(const Exchange& exchange, int receiver, const Wheel& slot)
        : exchange_(exchange),
          receiver_(receiver),
          sender_(exchange.senders, receiver, exchange.receivers),
          slot_(slot) {}
    void operator()() {
        const End& end = exchange_.end;
        const int lane = exchange_.lane(sender_.at(), receiver_);
        end.transport.receive_on(lane, end.peer(), end.payload.receive_slot(slot_.at()), end.bytes);
        end.transport.send_on(lane, end.peer(), end.payload.send_slot(slot_.at()), end.bytes);
        sender_.turn();
        slot_.turn();
    }

  private:
    Exchange exchange_;
    int receiver_;
    Wheel sender_, slot_;
};

class LatencyThreads : public Kernel {
  public:
    explicit LatencyThreads(const RowOptions& row)
        : senders_(row.workers.senders), receivers_(row.workers.receivers), stepwise_(row.validate) {}
    int messages(int) const override { return 2; }

    // One for each thread.
    int slots(int, int, int) const override { return std::max(senders_, receivers_); }

    // Receivers run freely through the order, each in its own slot. With --validate one must not receive before the
    // slot is filled, so they go repetition by repetition, and each message has the slot of its sender.
    void arm(const End& end, bool leads, std::int64_t repetitions) override {
        const Exchange exchange{end, senders_, receivers_};
        done_ = 0;
        crew_.begin(repetitions * senders_);
        if (leads) {
            first_sender_.emplace(exchange, 0);
            for (int sender = 1; sender < senders_; ++sender) crew_.add(sender, senders_, RoundTrip(exchange, sender));
            return;
        }
        for (int receiver = 0; receiver < receivers_; ++receiver) {
            const Wheel senders_slot(senders_, receiver, receivers_);
            const Wheel own_slot(receivers_, receiver, 0);
            crew_.add(receiver, receivers_, Answer(exchange, receiver, stepwise_ ? senders_slot : own_slot));
        }
        if (!stepwise_) crew_.let(repetitions * senders_);
    }
    void disarm(const End&, bool) override {
        if (const std::exception_ptr failure = crew_.end()) std::rethrow_exception(failure);
    }

    // The calling thread is the first sender.
    void lead(const End&, std::int64_t repetitions) override {
        done_ += repetitions;
        crew_.let(done_ * senders_);
        for (std::int64_t i = 0; i < repetitions; ++i) (*first_sender_)();
        crew_.await(done_ * senders_);
    }
    void follow(const End&, std::int64_t repetitions) override {
        if (!stepwise_) return;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            ++done_;
            crew_.let(done_ * senders_);
            crew_.await(done_ * senders_);
        }
    }

    // The messages of a repetition, one of each sender, have numbers of their own.
    void fill(const End& end, bool leads, std::int64_t first) override {
        for (int sender = 0; sender < senders_; ++sender) {
            end.payload.fill(sender, end.rank, end.peer(), first * senders_ + sender);
            end.payload.poison(sender, leads);
        }
    }
    void check(const End& end, bool, std::int64_t first, std::vector<Damage>& damages) override {
        for (int sender = 0; sender < senders_; ++sender) {
            const std::int64_t message = first * senders_ + sender;
            const auto offset = end.payload.damage(sender, end.peer(), end.rank, message);
            if (offset) damages.push_back({end.peer(), end.rank, end.bytes, message, *offset});
        }
    }

  private:
    int senders_, receivers_;
    bool stepwise_;
    std::int64_t done_ = 0;  // repetitions of the order
    std::optional<RoundTrip> first_sender_;
    Crew crew_;
};

}  // namespace

std::unique_ptr<Kernel> make_latency_mt(const RowOptions& row) { return std::make_unique<LatencyThreads>(row); }

}  // namespace fablint
