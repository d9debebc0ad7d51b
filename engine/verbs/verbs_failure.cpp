#include "verbs/verbs_failure.hpp"

#if __has_include(<infiniband/verbs.h>)

#include <algorithm>

#include "sockets/socket.hpp"

namespace fablint {

ibv_wc failure_of(std::vector<ibv_wc> completions, const std::function<bool(const ibv_wc&)>& is_of_peer,
                  const std::function<std::vector<ibv_wc>()>& poll, double limit_s) {
    const auto is_reason = [&is_of_peer](const ibv_wc& completion) {
        return is_of_peer(completion) && completion.status != IBV_WC_SUCCESS &&
               completion.status != IBV_WC_WR_FLUSH_ERR;
    };
    const ibv_wc first = completions.front();
    const auto deadline = after(limit_s);
    for (;;) {
        const auto found = std::find_if(completions.begin(), completions.end(), is_reason);
        if (found != completions.end()) return *found;
        if (SteadyTime::now() > deadline) return first;
        completions = poll();
    }
}

}  // namespace fablint

#endif
