#include "one_sided_kernel.hpp"

namespace fablint {

namespace {

struct Accumulate : Writes<false, Content::sum> {
    static void start(const Access& access, int slot) {
        access.remote.accumulate(access.peer, access.payload.offset_of(slot), access.payload.send_slot(slot),
                                 access.bytes);
    }
};

struct GetAccumulate : Writes<true, Content::sum> {
    static void start(const Access& access, int slot) {
        access.remote.get_accumulate(access.peer, access.payload.offset_of(slot), access.payload.send_slot(slot),
                                     access.payload.receive_slot(access.window + slot), access.bytes);
    }
};

}  // namespace

std::unique_ptr<Kernel> make_accumulate(const RowOptions& row) { return make_one_sided<Accumulate>(row); }

std::unique_ptr<Kernel> make_get_accumulate(const RowOptions& row) { return make_one_sided<GetAccumulate>(row); }

}  // namespace fablint
