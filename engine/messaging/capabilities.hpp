// Optional capabilities of a transport, each an interface of its own. A transport owns those that it offers and returns
// them from the accessors of Transport; a kernel requires them in registry/kernels.inc.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "memories/memory.hpp"
#include "messaging/window.hpp"

namespace fablint {

using Capabilities = unsigned;  // a set of the following, as registry/transports.inc names them

namespace capability {
inline constexpr Capabilities nothing = 0;
inline constexpr Capabilities persistent = 1;
inline constexpr Capabilities thread_lanes = 2;
inline constexpr Capabilities rma = 4;
inline constexpr Capabilities request_queue = 8;
inline constexpr Capabilities collectives = 16;
inline constexpr Capabilities atomics = 32;
inline constexpr Capabilities accumulation = 64;
inline constexpr Capabilities mpi_collectives = 128;
}  // namespace capability

// "rma, request_queue"; empty for none.
std::string capability_names(Capabilities capabilities);

// Messages that are prepared once and started many times. The destructor frees them; none may be in flight then.
class PreparedMessages {
  public:
    virtual ~PreparedMessages() = default;
    virtual void add_send(int peer, const void* data, std::size_t bytes) = 0;
    virtual void add_receive(int peer, void* data, std::size_t bytes) = 0;
    virtual void start() = 0;     // all of them
    virtual void complete() = 0;  // of all of them
};

class Persistent {
  public:
    virtual ~Persistent() = default;
    virtual std::unique_ptr<PreparedMessages> prepare() = 0;
};

// Blocking messages of several threads at once: each thread uses a lane of its own.
class ThreadLanes {
  public:
    virtual ~ThreadLanes() = default;
    virtual void send(int lane, int peer, const void* data, std::size_t bytes) = 0;
    virtual void receive(int lane, int peer, void* data, std::size_t bytes) = 0;
};

// Requests: messages of one int that a server takes in the order of arrival, from any sender.
class RequestQueue {
  public:
    virtual ~RequestQueue() = default;
    virtual void request(int peer, int content) = 0;
    virtual int next_request(int& content) = 0;  // returns the sender
    virtual bool has_request() = 0;
};

// Operations of all ranks of the run; every rank must call them. An operation other than the barrier may return before
// it is complete: Transport::complete() waits for it. Where `data` is `result`, the results replace the data: the
// contribution of a rank to all_gather() is then the part of `result` that it fills.
class Collectives {
  public:
    virtual ~Collectives() = default;
    virtual void barrier() = 0;
    // `data`: null at ranks other than the root. The root may find the data in `result` as well.
    virtual void broadcast(int root, const void* data, void* result, std::size_t bytes) = 0;
    virtual void sum(const void* data, void* result, std::size_t floats) = 0;
    virtual void all_gather(const void* data, void* result, std::size_t bytes) = 0;  // bytes: of one rank
    // Sums the parts of the ranks in `data`, `floats` elements each; a rank receives its own part of the sum. Returns
    // the address of that part: `result`, or an address in it where the results replace the data.
    virtual void* reduce_scatter(const void* data, void* result, std::size_t floats) = 0;
    virtual void all_to_all(const void* data, void* result, std::size_t bytes) = 0;  // bytes: for one rank
};

inline constexpr int root_rank = 0;  // rank that has the whole message of a collective with a root

// Collectives that MPI alone has: to and from the root, of vectors, whose parts have a length and a place each, and
// those that are started and completed later.
enum class MpiCollective {
    barrier,
    broadcast,
    all_reduce,
    all_gather,
    all_to_all,
    reduce,
    reduce_scatter,
    reduce_scatter_block,
    gather,
    scatter,
    gatherv,
    scatterv,
    all_gatherv,
    all_to_allv,
    all_to_allw
};

class MpiCollectives {
  public:
    virtual ~MpiCollectives() = default;
    // `bytes`: of one rank's part; of a reduction, of all elements, which are floats. The parts of a buffer are in the
    // order of the ranks, without gaps; where the elements do not divide evenly, reduce_scatter gives the first ranks
    // one element more each, and reduce_scatter_block leaves the last elements out.
    virtual void run(MpiCollective collective, const void* data, void* result, std::size_t bytes) = 0;
    // Transport::complete() waits for it; one at a time.
    virtual void start(MpiCollective collective, const void* data, void* result, std::size_t bytes) = 0;
    virtual void probe() = 0;  // lets MPI progress what was started
};

// Remote memory access.
class Rma {
  public:
    virtual ~Rma() = default;
    virtual std::unique_ptr<Window> expose(Memory& memory, const WindowRequest& request) = 0;  // collective
};

}  // namespace fablint
