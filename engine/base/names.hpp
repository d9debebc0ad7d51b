// Lists of names in messages and attributes.
#pragma once

#include <set>
#include <string>

namespace fablint {

// "eth0, lo"; empty for no names.
inline std::string joined(const std::set<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    return list;
}

}  // namespace fablint
