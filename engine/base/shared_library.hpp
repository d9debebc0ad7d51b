// Libraries that are loaded at run time: a host without one still has an engine, without what needs it.
#pragma once

#include <dlfcn.h>

#include <string>

#include "base/errors.hpp"

namespace fablint {

// A loaded library stays loaded until the process ends: MPI may use it as well.
class SharedLibrary {
  public:
    // Throws a usage error with `advice` if the library cannot be loaded.
    SharedLibrary(const char* file, const std::string& advice) : file_(file), handle_(dlopen(file, RTLD_NOW)) {
        if (handle_ == nullptr) {
            const char* reason = dlerror();
            throw usage_error(std::string(reason != nullptr ? reason : file) + ": " + advice);
        }
    }

    // Sets `function` to that of the library. Throws a usage error if the library lacks it.
    template <typename Function>
    void load(Function*& function, const char* name) const {
        function = reinterpret_cast<Function*>(dlsym(handle_, name));
        if (function == nullptr) throw usage_error(std::string(file_) + " has no function " + name + ": it is too old");
    }

  private:
    const char* file_;
    void* handle_;
};

}  // namespace fablint
