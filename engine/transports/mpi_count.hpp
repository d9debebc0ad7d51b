// Message lengths as MPI counts, which are int.
#pragma once

#include <climits>
#include <cstddef>

#include "base/errors.hpp"

namespace fablint {

inline int count_of(std::size_t bytes) {
    if (bytes > INT_MAX) throw usage_error("messages of more than 2 GiB - 1 are not possible over MPI");
    return static_cast<int>(bytes);
}

}  // namespace fablint
