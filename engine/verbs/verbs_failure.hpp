// Why a queue pair has failed.
#pragma once

#if __has_include(<infiniband/verbs.h>)

#include <infiniband/verbs.h>

#include <functional>
#include <vector>

namespace fablint {

// The completion that says why. Work that a failed queue pair still has is flushed, and completions of sends and of
// receives have no common order: that of a flushed receive may come before that of the send that failed. The first of
// `completions` failed; `poll` returns further ones, and is called for up to `limit_s`. Only completions count for
// which `is_of_peer` is true.
ibv_wc failure_of(std::vector<ibv_wc> completions, const std::function<bool(const ibv_wc&)>& is_of_peer,
                  const std::function<std::vector<ibv_wc>()>& poll, double limit_s);

}  // namespace fablint

#endif
