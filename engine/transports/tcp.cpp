#include <ctime>  // before errqueue.h, which needs timespec

#include <linux/errqueue.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/values.hpp"
#include "messaging/transport.hpp"
#include "sockets/tcp_listener.hpp"

namespace fablint {

namespace {

// Messages from this size on are divided among the streams of a pair; smaller ones take the streams by turns.
constexpr std::size_t smallest_piece = 16 << 10;
// Sends from this size on are offered to the kernel without a copy (MSG_ZEROCOPY): below about 10 KiB, pinning the
// pages and reading the notification take longer than the copy (Linux, Documentation/networking/msg_zerocopy).
constexpr std::size_t smallest_without_copy = 64 << 10;

// A part of a message that is not transferred yet.
struct Piece {
    char* data;
    std::size_t bytes;
};

// Pieces in the order in which they are transferred. The vector is reused: no allocation in the timed path after the
// first window.
class Queue {
  public:
    void add(char* data, std::size_t bytes) { pieces_.push_back({data, bytes}); }
    bool is_empty() const { return first_ == pieces_.size(); }
    Piece& front() { return pieces_[first_]; }
    const Piece* begin() const { return pieces_.data() + first_; }
    std::size_t size() const { return pieces_.size() - first_; }
    void remove(std::size_t bytes) {
        while (bytes > 0) {
            const std::size_t part = std::min(bytes, front().bytes);
            front().data += part;
            front().bytes -= part;
            bytes -= part;
            if (front().bytes == 0) ++first_;
        }
        if (is_empty()) {
            pieces_.clear();
            first_ = 0;
        }
    }

  private:
    std::vector<Piece> pieces_;
    std::size_t first_ = 0;
};

// One connection to a peer.
class Stream {
  public:
    Stream(Socket socket, int peer) : socket_(std::move(socket)), peer_(peer) {
        const int on = 1;
        copies_ = setsockopt(socket_.fd(), SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0;
    }

    void post_send(const char* data, std::size_t bytes) { sends_.add(const_cast<char*>(data), bytes); }
    void post_receive(char* data, std::size_t bytes) { receives_.add(data, bytes); }
    bool is_complete() const { return sends_.is_empty() && receives_.is_empty() && unconfirmed_ == 0; }

    // Transfers what the socket takes and has, without waiting. True if anything was transferred.
    bool progress() {
        bool moved = false;
        while (!sends_.is_empty() && send_some()) moved = true;
        while (!receives_.is_empty() && receive_some()) moved = true;
        while (unconfirmed_ > 0 && confirm_some()) moved = true;
        return moved;
    }

    pollfd poll_entry() const {
        const int events = (sends_.is_empty() ? 0 : POLLOUT) | (receives_.is_empty() ? 0 : POLLIN);
        return {socket_.fd(), static_cast<short>(events), 0};  // notifications arrive as POLLERR
    }

    // Address of this host that the connection uses.
    std::string local_address() const {
        SocketAddress own;
        own.length = sizeof own.storage;
        return getsockname(socket_.fd(), own.get(), &own.length) == 0 ? address_text(own.get()) : std::string();
    }

  private:
    bool send_some() {
        const Piece& piece = sends_.front();
        const bool pinned = !copies_ && piece.bytes >= smallest_without_copy;
        ssize_t sent = send(socket_.fd(), piece.data, piece.bytes, MSG_NOSIGNAL | (pinned ? MSG_ZEROCOPY : 0));
        if (sent < 0 && pinned && errno == ENOBUFS) {  // the limit of pinned pages
            copies_ = true;
            sent = send(socket_.fd(), piece.data, piece.bytes, MSG_NOSIGNAL);
        } else if (sent > 0 && pinned) {
            ++unconfirmed_;
        }
        if (sent < 0) return would_block();
        sends_.remove(static_cast<std::size_t>(sent));
        return true;
    }

    bool receive_some() {
        constexpr std::size_t most = 64;
        std::array<iovec, most> parts;
        const std::size_t count = std::min(most, receives_.size());
        for (std::size_t i = 0; i < count; ++i) parts[i] = {receives_.begin()[i].data, receives_.begin()[i].bytes};
        const ssize_t got = readv(socket_.fd(), parts.data(), static_cast<int>(count));
        if (got == 0) throw PeerFailure(peer_, "its TCP connection was closed");
        if (got < 0) return would_block();
        receives_.remove(static_cast<std::size_t>(got));
        return true;
    }

    // Reads a notification: the kernel no longer needs the pages of a range of sends. If the kernel had to copy them
    // after all, as within a host, later sends of this stream are copied at once.
    bool confirm_some() {
        std::array<char, 128> control;
        msghdr message{};
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        if (recvmsg(socket_.fd(), &message, MSG_ERRQUEUE) < 0) return would_block();
        const cmsghdr* header = CMSG_FIRSTHDR(&message);
        if (header == nullptr) return true;
        sock_extended_err notification;
        std::memcpy(&notification, CMSG_DATA(header), sizeof notification);
        if (notification.ee_origin != SO_EE_ORIGIN_ZEROCOPY)
            throw PeerFailure(peer_, std::strerror(static_cast<int>(notification.ee_errno)));
        unconfirmed_ -= notification.ee_data - notification.ee_info + 1;
        if ((notification.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0) copies_ = true;
        return true;
    }

    // False, if the last call only had nothing to do.
    bool would_block() const {
        if (errno == EAGAIN || errno == EINTR) return false;
        throw PeerFailure(peer_, std::string("TCP: ") + std::strerror(errno));
    }

    Socket socket_;
    int peer_;
    bool copies_ = false;
    std::uint32_t unconfirmed_ = 0;  // sends whose pages the kernel may still read
    Queue sends_, receives_;
};

// The streams of a pair. Both ends divide messages among them by the same rule, so that no header is needed.
struct Peer {
    std::vector<Stream> streams;
    std::size_t next_send = 0, next_receive = 0;
    bool is_active = false;  // has something posted
};

// Interface of an address of this host, with the version of IP: ipv4/hsn0.
std::string interface_of(const std::string& address, const std::vector<LocalAddress>& all) {
    std::string name = address == "::1" || address.rfind("127.", 0) == 0 ? "lo" : address;
    for (const LocalAddress& own : all)
        if (own.address == address) name = own.interface;
    return (is_ipv6(address) ? "ipv6/" : "ipv4/") + name;
}

// TCP sockets. The messages carry no header: both ends know the length of every message.
class TcpTransport : public Transport {
  public:
    explicit TcpTransport(const TransportSettings& settings)
        : settings_(settings),
          own_(select_addresses(local_addresses(), settings.device, settings.interfaces)),
          listener_(own_) {}

    std::string address() const override { return listener_.address().text(); }

    std::string devices() const override {
        const std::vector<LocalAddress> all = local_addresses();
        std::set<std::string> names;
        for (const auto& [rank, peer] : peers_)
            for (const Stream& stream : peer.streams) names.insert(interface_of(stream.local_address(), all));
        return joined(names);
    }

    // The lower rank connects, the higher one accepts.
    void connect(int peer, const std::string& address) override {
        Peer& connection = peers_[peer];
        const bool through_own = !settings_.device.empty();
        for (int stream = 0; stream < settings_.streams; ++stream) try {
                connection.streams.emplace_back(settings_.rank < peer
                                                    ? connect_tcp(TcpAddress::parsed(address), {settings_.rank, stream},
                                                                  own_, through_own, settings_.connect_limit_s)
                                                    : listener_.take({peer, stream}, settings_.connect_limit_s),
                                                peer);
            } catch (const std::runtime_error& error) {
                throw PeerFailure(peer, error.what());
            }
    }

    void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) override {
        Peer& to = activate(peer);
        const char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride)
            divide(to, to.next_send, const_cast<char*>(data), bytes,
                   [](Stream& stream, char* piece, std::size_t length) { stream.post_send(piece, length); });
    }
    void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) override {
        Peer& from = activate(peer);
        char* data = buffers.first;
        for (int i = 0; i < buffers.count; ++i, data += buffers.stride)
            divide(from, from.next_receive, data, bytes,
                   [](Stream& stream, char* piece, std::size_t length) { stream.post_receive(piece, length); });
    }

    void complete() override {
        for (;;) {
            bool moved = false;
            bool is_complete = true;
            for (Peer* peer : active_)
                for (Stream& stream : peer->streams) {
                    moved = stream.progress() || moved;
                    is_complete = is_complete && stream.is_complete();
                }
            if (is_complete) break;
            if (!moved && settings_.yielding) wait();
        }
        for (Peer* peer : active_) peer->is_active = false;
        active_.clear();
    }

  private:
    Peer& activate(int peer) {
        Peer& connection = peers_.at(peer);
        if (!connection.is_active) active_.push_back(&connection);
        connection.is_active = true;
        return connection;
    }

    template <typename Post>
    void divide(Peer& peer, std::size_t& next, char* data, std::size_t bytes, Post post) {
        const std::size_t streams = peer.streams.size();
        if (bytes == 0) {  // TCP has no empty messages: one byte stands for it
            post(peer.streams[next], &empty_message_, 1);
        } else if (bytes < streams * smallest_piece || streams == 1) {
            post(peer.streams[next], data, bytes);
        } else {
            for (std::size_t i = 0; i < streams; ++i) {
                const std::size_t begin = bytes * i / streams;
                post(peer.streams[i], data + begin, bytes * (i + 1) / streams - begin);
            }
            return;
        }
        next = next + 1 == streams ? 0 : next + 1;
    }

    // With more ranks than CPUs, a rank that spins takes the CPU from its peer.
    void wait() {
        entries_.clear();
        for (const Peer* peer : active_)
            for (const Stream& stream : peer->streams)
                if (!stream.is_complete()) entries_.push_back(stream.poll_entry());
        poll(entries_.data(), entries_.size(), -1);
    }

    TransportSettings settings_;
    std::vector<LocalAddress> own_;
    TcpListener listener_;
    std::map<int, Peer> peers_;
    std::vector<Peer*> active_;
    std::vector<pollfd> entries_;
    char empty_message_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(const TransportSettings& settings) {
    return std::make_unique<TcpTransport>(settings);
}

}  // namespace fablint
