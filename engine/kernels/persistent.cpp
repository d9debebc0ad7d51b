// The traffic of latency, bandwidth and bibandwidth with persistent requests, whose creation and release are untimed,
// as in osu_latency_persistent, osu_bw_persistent and osu_bibw_persistent.
#include "kernels/kernel.hpp"

namespace fablint {

namespace {

class PersistentKernel : public Kernel {
  public:
    using Kernel::Kernel;
    void arm(const Endpoint& end, bool leads, std::int64_t) override {
        sends_ = end.transport.persistent()->prepare();
        receives_ = end.transport.persistent()->prepare();
        prepare(end, leads);
    }
    void disarm(const Endpoint&, bool) override {
        sends_.reset();
        receives_.reset();
    }

  protected:
    virtual void prepare(const Endpoint& end, bool leads) = 0;

    void prepare_sends(const Endpoint& end) {
        for (int slot = 0; slot < end.window; ++slot)
            sends_->add_send(end.peer(), end.payload.send_slot(slot), end.bytes);
    }
    void prepare_receives(const Endpoint& end) {
        for (int slot = 0; slot < end.window; ++slot)
            receives_->add_receive(end.peer(), end.payload.receive_slot(slot), end.bytes);
    }
    static void transfer(PreparedMessages& messages) {
        messages.start();
        messages.complete();
    }

    std::unique_ptr<PreparedMessages> sends_, receives_;
};

class LatencyPersistent : public PersistentKernel {
  public:
    LatencyPersistent() : PersistentKernel(round_trip_traits()) {}
    void lead(const Endpoint&, std::int64_t repetitions) override {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            transfer(*sends_);
            transfer(*receives_);
        }
    }
    void follow(const Endpoint&, std::int64_t repetitions) override {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            transfer(*receives_);
            transfer(*sends_);
        }
    }

  private:
    void prepare(const Endpoint& end, bool) override {
        prepare_sends(end);
        prepare_receives(end);
    }
};

// The acknowledgement is an ordinary message, as OSU's.
class BandwidthPersistent : public PersistentKernel {
  public:
    BandwidthPersistent() : PersistentKernel({}) {}
    void lead(const Endpoint& end, std::int64_t repetitions) override {
        char acknowledgement = 0;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            transfer(*sends_);
            end.transport.receive(end.peer(), &acknowledgement, 1);
        }
    }
    void follow(const Endpoint& end, std::int64_t repetitions) override {
        const char acknowledgement = 0;
        for (std::int64_t i = 0; i < repetitions; ++i) {
            transfer(*receives_);
            end.transport.send(end.peer(), &acknowledgement, 1);
        }
    }

  private:
    void prepare(const Endpoint& end, bool leads) override { leads ? prepare_sends(end) : prepare_receives(end); }
};

class BibandwidthPersistent : public PersistentKernel {
  public:
    BibandwidthPersistent() : PersistentKernel(both_receive_traits()) {}
    void lead(const Endpoint&, std::int64_t repetitions) override { stream(repetitions); }
    void follow(const Endpoint&, std::int64_t repetitions) override { stream(repetitions); }

  private:
    void prepare(const Endpoint& end, bool) override {
        prepare_receives(end);
        prepare_sends(end);
    }
    // Receives start first, so that messages are expected when they arrive.
    void stream(std::int64_t repetitions) {
        for (std::int64_t i = 0; i < repetitions; ++i) {
            receives_->start();
            sends_->start();
            sends_->complete();
            receives_->complete();
        }
    }
};

}  // namespace

std::unique_ptr<Kernel> make_latency_persistent(const KernelOptions&) { return std::make_unique<LatencyPersistent>(); }

std::unique_ptr<Kernel> make_bandwidth_persistent(const KernelOptions&) {
    return std::make_unique<BandwidthPersistent>();
}

std::unique_ptr<Kernel> make_bibandwidth_persistent(const KernelOptions&) {
    return std::make_unique<BibandwidthPersistent>();
}

}  // namespace fablint
