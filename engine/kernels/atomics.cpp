// Operations on one 8-byte number.
#include "kernels/one_sided_kernel.hpp"
#include "transports/mpi_window.hpp"

namespace fablint {

namespace {

// The target holds the comparand only for the first swap, unless --validate restores it; the swaps of OSU fail as well.
const std::uint64_t comparand = Payload::poisoned_number();

struct CompareAndSwap : Writes<true, Content::message> {
    static void perform(const Access& access) {
        access.epochs.open(access.peer);
        access.atomics->compare_and_swap(access.peer, 0, access.payload.send_slot(0), &comparand,
                                         access.payload.receive_slot(1));
        access.window.complete(access.peer);
    }
};

struct FetchAndAdd : Writes<true, Content::sum64> {
    static void perform(const Access& access) {
        access.epochs.open(access.peer);
        access.atomics->fetch_and_add(access.peer, 0, access.payload.send_slot(0), access.payload.receive_slot(1));
        access.window.complete(access.peer);
    }
};

}  // namespace

std::unique_ptr<Kernel> make_cas(const KernelOptions& options) {
    refuse_swaps_that_crash(options.win);
    return make_one_sided<CompareAndSwap>(options);
}

std::unique_ptr<Kernel> make_fop(const KernelOptions& options) { return make_one_sided<FetchAndAdd>(options); }

}  // namespace fablint
