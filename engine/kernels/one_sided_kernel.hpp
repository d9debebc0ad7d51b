// The timed loops of one-sided kernels. What a kernel does to the window of its peer is an operation, a class with
//     exposes_what_is_sent  as Kernel's
//     fetches               does the origin keep what it found, in a slot beside that of its own window?
//     at_origin, at_target  what --validate must find in the slots there, as Kernel's at_leader and at_follower
//     perform(access)       does it, from open() to close(), for the window; others than puts and gets have windows of
//     one
#pragma once

#include "kernels/kernel.hpp"
#include "spec/row.hpp"

namespace fablint {

// What an access needs, looked up once: within one host it takes 30 ns, of which looking it up would be a tenth.
struct Access {
    explicit Access(const End& end)
        : remote(*end.remote), payload(end.payload), peer(end.peer()), bytes(end.bytes), window(end.window) {}
    OneSided& remote;
    Payload& payload;
    int peer;
    std::size_t bytes;
    int window;
};

// Operations that change the target's window; those that fetch keep what was there before.
template <bool Fetches, Content AtTarget>
struct Writes {
    static constexpr bool exposes_what_is_sent = false;
    static constexpr bool fetches = Fetches;
    static constexpr std::optional<Content> at_origin =
        Fetches ? std::optional<Content>(Content::untouched) : std::nullopt;
    static constexpr std::optional<Content> at_target = AtTarget;
};

template <typename Operation>
class OneSidedKernel : public Kernel {
  public:
    int messages(int window) const override { return window; }
    bool exposes_what_is_sent() const override { return Operation::exposes_what_is_sent; }
    int slots(int window, int fan, int) const override { return (Operation::fetches ? 2 : 1) * window * fan; }

    void arm(const End& end, bool, std::int64_t) override { end.remote->hold(end.peer()); }
    void disarm(const End& end, bool) override { end.remote->release(end.peer()); }

    void fill(const End& end, bool, std::int64_t first) override {
        const std::optional<Content> at_target = Operation::at_target;
        const bool summed = at_target == Content::sum;
        for (int slot = 0; slot < end.window; ++slot) {
            end.payload.fill(slot, end.rank, end.peer(), first + slot, summed);
            end.payload.poison(slot, false);
            if (Operation::fetches) end.payload.poison(found_slot(end, slot), true);
        }
    }
    void check(const End& end, bool leads, std::int64_t first, std::vector<Damage>& damages) override {
        const std::optional<Content> as_origin = Operation::at_origin, as_target = Operation::at_target;
        for (int slot = 0; slot < end.window; ++slot) {
            if (leads || both_access()) compare(end, found_slot(end, slot), as_origin, first + slot, damages);
            if (!leads || both_access()) compare(end, slot, as_target, first + slot, damages);
        }
    }

  protected:
    virtual bool both_access() const { return false; }

    static void perform(const Access& access) { Operation::perform(access); }
    static void grant(const Access& access) {
        access.remote.expose(access.peer);
        access.remote.unexpose(access.peer);
    }
    static int found_slot(const End& end, int slot) { return Operation::fetches ? end.window + slot : slot; }

  private:
    static void compare(const End& end, int slot, std::optional<Content> content, std::int64_t message,
                        std::vector<Damage>& damages) {
        if (!content) return;
        const auto offset = end.payload.damage(slot, end.peer(), end.rank, message, *content);
        if (offset) damages.push_back({end.peer(), end.rank, end.bytes, message, *offset});
    }
};

// The leader alone, as OSU with locks and flushes: the follower only lets MPI work while it waits for the next order.
template <typename Operation>
class OneWay : public OneSidedKernel<Operation> {
  public:
    void lead(const End& end, std::int64_t repetitions) override {
        const Access access(end);
        for (std::int64_t i = 0; i < repetitions; ++i) this->perform(access);
    }
    void follow(const End&, std::int64_t) override {}
};

// For --validate: the follower looks as soon as the leader says that it is done, and flush_local is done early.
template <typename Operation>
class OneWayConfirmed : public OneWay<Operation> {
  public:
    void lead(const End& end, std::int64_t repetitions) override {
        OneWay<Operation>::lead(end, repetitions);
        end.remote->flush(end.peer());
    }
};

// With pscw and fence the origin hears that its access is over, not that the target has it. So both take turns and the
// time of both is halved, as OSU's latencies: the answer proves that the message had arrived.
template <typename Operation>
class TakingTurns : public OneSidedKernel<Operation> {
  public:
    int messages(int window) const override { return 2 * window; }
    void lead(const End& end, std::int64_t repetitions) override {
        const Access access(end);
        for (std::int64_t i = 0; i < repetitions; ++i) {
            this->perform(access);
            this->grant(access);
        }
    }
    void follow(const End& end, std::int64_t repetitions) override {
        const Access access(end);
        for (std::int64_t i = 0; i < repetitions; ++i) {
            this->grant(access);
            this->perform(access);
        }
    }

  protected:
    bool both_access() const override { return true; }
};

// The same for windows, which go one way: one byte back, as in bandwidth. OSU has none and counts the last window
// before it has arrived.
template <typename Operation>
class OneWayAcknowledged : public OneSidedKernel<Operation> {
  public:
    void lead(const End& end, std::int64_t repetitions) override {
        const Access access(end);
        char acknowledgement = 0;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            this->perform(access);
            end.transport.receive(access.peer, &acknowledgement, 1);
        }
    }
    void follow(const End& end, std::int64_t repetitions) override {
        const Access access(end);
        const char acknowledgement = 0;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            this->grant(access);
            end.transport.send(access.peer, &acknowledgement, 1);
        }
    }
};

template <typename Operation>
std::unique_ptr<Kernel> make_one_sided(const RowOptions& row) {
    const bool both_ends = sync_named(row.sync).both_ends;
    if (both_ends && kernel_named(row.kernel).windowed()) return std::make_unique<OneWayAcknowledged<Operation>>();
    if (both_ends) return std::make_unique<TakingTurns<Operation>>();
    if (row.validate) return std::make_unique<OneWayConfirmed<Operation>>();
    return std::make_unique<OneWay<Operation>>();
}

}  // namespace fablint
