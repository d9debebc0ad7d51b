#include "transports/transport.hpp"

namespace fablint {

namespace {

class NullPrepared : public Prepared {
  public:
    void add_send(int, const void*, std::size_t) override {}
    void add_receive(int, void*, std::size_t) override {}
    void start() override {}
    void complete() override {}
};

// Its memory is there, but nobody sees it.
class NullWindow : public OneSided {
  public:
    NullWindow(Memory& memory, std::size_t bytes) : memory_(memory), base_(memory.allocate(bytes)) {}
    ~NullWindow() override { memory_.release(base_); }
    NullWindow(const NullWindow&) = delete;
    NullWindow& operator=(const NullWindow&) = delete;
    void* base() const override { return base_; }
    void put(int, std::size_t, const Buffers<const char>&, std::size_t) override {}
    void get(int, std::size_t, const Buffers<char>&, std::size_t) override {}
    void accumulate(int, std::size_t, const void*, std::size_t) override {}
    void get_accumulate(int, std::size_t, const void*, void*, std::size_t) override {}
    void compare_and_swap(int, std::size_t, const void*, const void*, void*) override {}
    void fetch_and_add(int, std::size_t, const void*, void*) override {}
    void hold(int) override {}
    void release(int) override {}
    void open(int) override {}
    void close(int) override {}
    void expose(int) override {}
    void unexpose(int) override {}
    void flush(int) override {}
    void settle() override {}

  private:
    Memory& memory_;
    void* base_;
};

class NullTransport : public Transport {
  public:
    void send(int, const void*, std::size_t) override {}
    void receive(int, void*, std::size_t) override {}
    void post_sends(int, const Buffers<const char>&, std::size_t) override {}
    void post_receives(int, const Buffers<char>&, std::size_t) override {}
    void complete() override {}
    void send_on(int, int, const void*, std::size_t) override {}
    void receive_on(int, int, void*, std::size_t) override {}
    std::unique_ptr<Prepared> prepare() override { return std::make_unique<NullPrepared>(); }
    void request(int, int) override {}
    int next_request(int& what) override { return what = 0; }  // as if rank 0 had asked for its first message
    bool request_waits() override { return false; }
    void barrier() override {}
    void broadcast(int, void*, std::size_t) override {}
    void sum(const void*, void*, std::size_t) override {}
    void all_gather(const void*, void*, std::size_t) override {}
    void all_to_all(const void*, void*, std::size_t) override {}
    std::unique_ptr<OneSided> expose(Memory& memory, const WindowRequest& request) override {
        return std::make_unique<NullWindow>(memory, request.bytes);
    }
};

}  // namespace

std::unique_ptr<Transport> make_null_transport() { return std::make_unique<NullTransport>(); }

}  // namespace fablint
