// Operations on one 8-byte number.
#include "../transports/mpi_window.hpp"
#include "one_sided_kernel.hpp"

namespace fablint {

namespace {

// The target holds the comparand for the first time only, unless --validate puts it back; OSU's swaps fail likewise.
const std::uint64_t comparand = Payload::poisoned_number();

struct CompareAndSwap : Writes<true, Content::message> {
    static void start(const Access& access, int slot) {
        access.remote.compare_and_swap(access.peer, access.payload.offset_of(slot), access.payload.send_slot(slot),
                                       &comparand, access.payload.receive_slot(access.window + slot));
    }
};

struct FetchAndAdd : Writes<true, Content::sum64> {
    static void start(const Access& access, int slot) {
        access.remote.fetch_and_add(access.peer, access.payload.offset_of(slot), access.payload.send_slot(slot),
                                    access.payload.receive_slot(access.window + slot));
    }
};

}  // namespace

std::unique_ptr<Kernel> make_cas(const RowOptions& row) {
    refuse_swaps_that_crash(row.win);
    return make_one_sided<CompareAndSwap>(row);
}

std::unique_ptr<Kernel> make_fop(const RowOptions& row) { return make_one_sided<FetchAndAdd>(row); }

}  // namespace fablint
