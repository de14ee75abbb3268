// A fixed-capacity FIFO ring: memory is taken once, at construction. One owner, no synchronisation.
#pragma once

#include <cassert>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace tidepool {

template <typename T>
class ring {
    std::vector<std::optional<T>> _slots;
    size_t _head = 0;
    size_t _size = 0;

public:
    explicit ring(size_t capacity) : _slots(capacity) { assert(capacity > 0); }

    bool empty() const noexcept { return _size == 0; }
    bool full() const noexcept { return _size == _slots.size(); }
    size_t size() const noexcept { return _size; }
    size_t capacity() const noexcept { return _slots.size(); }

    void push(T value) {
        assert(!full());
        _slots[(_head + _size) % _slots.size()].emplace(std::move(value));
        ++_size;
    }
    T pop() {
        assert(!empty());
        T value = std::move(*_slots[_head]);
        _slots[_head].reset();
        _head = (_head + 1) % _slots.size();
        --_size;
        return value;
    }
    T& front() noexcept { return *_slots[_head]; }
};

} // namespace tidepool
