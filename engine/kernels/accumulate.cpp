#include "kernels/one_sided_kernel.hpp"

namespace fablint {

namespace {

struct Accumulate : Writes<false, Content::sum> {
    static void perform(const Access& access) {
        access.epochs.open(access.peer);
        access.accumulation->accumulate(access.peer, 0, access.payload.send_slot(0), access.bytes);
        access.window.complete(access.peer);
    }
};

struct GetAccumulate : Writes<true, Content::sum> {
    static void perform(const Access& access) {
        access.epochs.open(access.peer);
        access.accumulation->get_accumulate(access.peer, 0, access.payload.send_slot(0), access.payload.receive_slot(1),
                                            access.bytes);
        access.window.complete(access.peer);
    }
};

}  // namespace

std::unique_ptr<Kernel> make_accumulate(const KernelOptions& options) { return make_one_sided<Accumulate>(options); }

std::unique_ptr<Kernel> make_get_accumulate(const KernelOptions& options) {
    return make_one_sided<GetAccumulate>(options);
}

}  // namespace fablint
