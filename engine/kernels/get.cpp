#include "kernels/one_sided_kernel.hpp"

namespace fablint {

namespace {

struct Get {
    static constexpr bool exposes_sent = true;
    static constexpr bool fetches = false;
    static constexpr std::optional<Content> at_origin = Content::message;
    static constexpr std::optional<Content> at_target = std::nullopt;
    static void perform(const Access& access) {
        access.window.access_get(access.peer, 0, access.payload.receives(0, access.messages), access.bytes);
    }
};

}  // namespace

std::unique_ptr<Kernel> make_get_latency(const KernelOptions& options) { return make_one_sided<Get>(options); }

std::unique_ptr<Kernel> make_get_bandwidth(const KernelOptions& options) { return make_one_sided<Get>(options); }

}  // namespace fablint
