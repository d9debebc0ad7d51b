#include "kernels/one_sided_kernel.hpp"

namespace fablint {

namespace {

struct Accumulate : Writes<false, Content::sum> {
    static void perform(const Access& access) {
        access.remote.open(access.peer);
        access.remote.accumulate(access.peer, 0, access.payload.send_slot(0), access.bytes);
        access.remote.close(access.peer);
    }
};

struct GetAccumulate : Writes<true, Content::sum> {
    static void perform(const Access& access) {
        access.remote.open(access.peer);
        access.remote.get_accumulate(access.peer, 0, access.payload.send_slot(0), access.payload.receive_slot(1),
                                     access.bytes);
        access.remote.close(access.peer);
    }
};

}  // namespace

std::unique_ptr<Kernel> make_accumulate(const RowOptions& row) { return make_one_sided<Accumulate>(row); }

std::unique_ptr<Kernel> make_get_accumulate(const RowOptions& row) { return make_one_sided<GetAccumulate>(row); }

}  // namespace fablint
