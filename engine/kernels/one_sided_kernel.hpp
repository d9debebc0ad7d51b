// The timed loops of one-sided kernels. An operation is a class that describes the access to the peer's window, with
//     exposes_sent          as in KernelTraits
//     fetches               is the target's previous content returned, into a slot next to that of its own window?
//     at_origin, at_target  content of the slots that --validate expects, as at_leader and at_follower of KernelTraits
//     perform(access)       the access, from Epochs::open() to Window::complete(), for all messages of the window; only
//                           puts and gets have more than one
#pragma once

#include "kernels/kernel.hpp"

namespace fablint {

// The arguments of an access, read once: within one host an access takes 30 ns, of which reading them would be a tenth.
struct Access {
    explicit Access(const Endpoint& end)
        : window(*end.remote),
          epochs(window.epochs()),
          atomics(window.atomics()),
          accumulation(window.accumulation()),
          payload(end.payload),
          peer(end.peer()),
          bytes(end.bytes),
          messages(end.window) {}
    Window& window;
    Epochs& epochs;
    Atomics* atomics;
    Accumulation* accumulation;
    Payload& payload;
    int peer;
    std::size_t bytes;
    int messages;  // in the window of messages
};

// Operations that change the target's window; fetching ones return its previous content.
template <bool Fetches, Content AtTarget>
struct Writes {
    static constexpr bool exposes_sent = false;
    static constexpr bool fetches = Fetches;
    static constexpr std::optional<Content> at_origin =
        Fetches ? std::optional<Content>(Content::untouched) : std::nullopt;
    static constexpr std::optional<Content> at_target = AtTarget;
};

template <typename Operation>
class OneSidedKernel : public Kernel {
  public:
    // `both_access`: each end accesses the other.
    explicit OneSidedKernel(bool both_access = false, int messages = 1)
        : Kernel(access_traits(messages)), both_access_(both_access) {}

    void arm(const Endpoint& end, bool, std::int64_t) override { end.remote->epochs().hold(end.peer()); }
    void disarm(const Endpoint& end, bool) override { end.remote->epochs().release(end.peer()); }

    void fill(const Endpoint& end, bool, std::int64_t first) override {
        const std::optional<Content> at_target = Operation::at_target;
        const bool summed = at_target == Content::sum;
        for (int slot = 0; slot < end.window; ++slot) {
            end.payload.fill(slot, end.rank, end.peer(), first + slot, summed);
            end.payload.poison(slot, false);
            if (Operation::fetches) end.payload.poison(found_slot(end, slot), true);
        }
    }
    void check(const Endpoint& end, bool leads, std::int64_t first, std::vector<Damage>& damages) override {
        const std::optional<Content> as_origin = Operation::at_origin, as_target = Operation::at_target;
        for (int slot = 0; slot < end.window; ++slot) {
            if (leads || both_access_) compare(end, found_slot(end, slot), as_origin, first + slot, damages);
            if (!leads || both_access_) compare(end, slot, as_target, first + slot, damages);
        }
    }

  protected:
    static void perform(const Access& access) { Operation::perform(access); }
    static void grant(const Access& access) {
        access.epochs.expose(access.peer);
        access.epochs.unexpose(access.peer);
    }
    static int found_slot(const Endpoint& end, int slot) { return Operation::fetches ? end.window + slot : slot; }

  private:
    static KernelTraits access_traits(int messages) {
        KernelTraits traits;
        traits.messages = messages;
        traits.exposes_sent = Operation::exposes_sent;
        traits.slots = Operation::fetches ? 2 : 1;
        return traits;
    }

    static void compare(const Endpoint& end, int slot, std::optional<Content> content, std::int64_t message,
                        std::vector<Damage>& damages) {
        if (!content) return;
        const auto offset = end.payload.damage(slot, end.peer(), end.rank, message, *content);
        if (offset) damages.push_back({end.peer(), end.rank, end.bytes, message, *offset});
    }

    bool both_access_;
};

// Only the leader accesses, as in OSU with locks and flushes: the follower only makes MPI progress while it waits for
// the next order.
template <typename Operation>
class Unidirectional : public OneSidedKernel<Operation> {
  public:
    void lead(const Endpoint& end, std::int64_t repetitions) override {
        const Access access(end);
        for (std::int64_t i = 0; i < repetitions; ++i) this->perform(access);
    }
    void follow(const Endpoint&, std::int64_t) override {}
};

// For --validate: flushes after the accesses, since the follower checks as soon as the leader has finished, and
// flush_local completes earlier.
template <typename Operation>
class UnidirectionalConfirmed : public Unidirectional<Operation> {
  public:
    void lead(const Endpoint& end, std::int64_t repetitions) override {
        Unidirectional<Operation>::lead(end, repetitions);
        end.remote->flush(end.peer());
    }
};

// With pscw and fence the origin learns that its access has ended, not that it is complete at the target. Both ends
// take turns, and the time is halved, as in OSU's latencies: the answer proves that the message has arrived.
template <typename Operation>
class TakingTurns : public OneSidedKernel<Operation> {
  public:
    TakingTurns() : OneSidedKernel<Operation>(true, 2) {}
    void lead(const Endpoint& end, std::int64_t repetitions) override {
        const Access access(end);
        for (std::int64_t i = 0; i < repetitions; ++i) {
            this->perform(access);
            this->grant(access);
        }
    }
    void follow(const Endpoint& end, std::int64_t repetitions) override {
        const Access access(end);
        for (std::int64_t i = 0; i < repetitions; ++i) {
            this->grant(access);
            this->perform(access);
        }
    }
};

// With pscw and fence, for windows in one direction: one byte back, as in bandwidth. OSU has no such byte and counts
// the last window before it has arrived.
template <typename Operation>
class UnidirectionalAcknowledged : public OneSidedKernel<Operation> {
  public:
    void lead(const Endpoint& end, std::int64_t repetitions) override {
        const Access access(end);
        char acknowledgement = 0;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            this->perform(access);
            end.transport.receive(access.peer, &acknowledgement, 1);
        }
    }
    void follow(const Endpoint& end, std::int64_t repetitions) override {
        const Access access(end);
        const char acknowledgement = 0;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            this->grant(access);
            end.transport.send(access.peer, &acknowledgement, 1);
        }
    }
};

template <typename Operation>
std::unique_ptr<Kernel> make_one_sided(const KernelOptions& options) {
    const bool both_ends = sync_named(options.sync).both_ends;
    if (both_ends && kernel_named(options.kernel).windowed())
        return std::make_unique<UnidirectionalAcknowledged<Operation>>();
    if (both_ends) return std::make_unique<TakingTurns<Operation>>();
    if (options.validate) return std::make_unique<UnidirectionalConfirmed<Operation>>();
    return std::make_unique<Unidirectional<Operation>>();
}

}  // namespace fablint
