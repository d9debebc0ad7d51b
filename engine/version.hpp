#pragma once

namespace fablint {

inline constexpr const char* version = "0.1.0";

}  // namespace fablint
