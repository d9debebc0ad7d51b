// What the windows of all libraries share that address remote memory by a number and a key.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "libraries/message_epochs.hpp"

namespace fablint {

// Memory of the engine, or of the library where `request.win` is not create, and the epochs of pscw.
class LibraryWindow : public Window {
  public:
    LibraryWindow(Transport& transport, Memory& memory, const WindowRequest& request)
        : own_(request.win == "create" ? memory.allocate(request.bytes) : nullptr, ReleaseMemory{&memory}) {
        if (request.sync == "pscw") epochs_.emplace(transport);
    }

    void* base() const override { return own_.get(); }
    Epochs& epochs() override { return epochs_ ? *epochs_ : Window::epochs(); }

  protected:
    // The end of complete(): its operations are complete as the synchronisation says.
    void close_access(int peer) {
        if (epochs_) epochs_->close(peer);
    }

    // Calls post(buffer, address at the target) for each buffer.
    template <typename Data, typename Post>
    static void for_each(const Buffers<Data>& buffers, std::uint64_t target, Post post) {
        Data* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride, target += buffers.stride) post(data, target);
    }

  private:
    OwnedMemory own_;  // null: memory of the library
    std::optional<MessageEpochs> epochs_;
};

}  // namespace fablint
