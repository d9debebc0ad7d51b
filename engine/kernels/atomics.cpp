// Operations on one 8-byte number.
#include "kernels/one_sided_kernel.hpp"
#include "transports/mpi_window.hpp"

namespace fablint {

namespace {

// The target holds the comparand for the first time only, unless --validate puts it back; OSU's swaps fail likewise.
const std::uint64_t comparand = Payload::poisoned_number();

struct CompareAndSwap : Writes<true, Content::message> {
    static void perform(const Access& access) {
        access.remote.open(access.peer);
        access.remote.compare_and_swap(access.peer, 0, access.payload.send_slot(0), &comparand,
                                       access.payload.receive_slot(1));
        access.remote.close(access.peer);
    }
};

struct FetchAndAdd : Writes<true, Content::sum64> {
    static void perform(const Access& access) {
        access.remote.open(access.peer);
        access.remote.fetch_and_add(access.peer, 0, access.payload.send_slot(0), access.payload.receive_slot(1));
        access.remote.close(access.peer);
    }
};

}  // namespace

std::unique_ptr<Kernel> make_cas(const RowOptions& row) {
    refuse_swaps_that_crash(row.win);
    return make_one_sided<CompareAndSwap>(row);
}

std::unique_ptr<Kernel> make_fop(const RowOptions& row) { return make_one_sided<FetchAndAdd>(row); }

}  // namespace fablint
