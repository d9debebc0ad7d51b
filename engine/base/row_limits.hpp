// The constants of registry/row_limits.inc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fablint::row_limits {

#define ROW_LIMIT(name, type, value, description) inline constexpr type name = value;
#include "registry/row_limits.inc"

}  // namespace fablint::row_limits
