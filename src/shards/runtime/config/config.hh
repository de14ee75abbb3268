// The typed configuration tree. Plain values with their defaults; what each means, its range and
// whether it is live is in schema.cc, the one place to add a key. Free of Seastar: tidepoolctl
// reads the same tree.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tidepool {

struct reactor_config {
    uint64_t cores = 0;
    std::string memory = "";
    std::string backend = "auto";
    std::string cpuset = "";
    std::string hugepages = "";
    bool poll = false;
    bool overprovisioned = true;
    bool lock_memory = false;
    std::string io_properties_file = "";
    std::string network = "posix";
    uint64_t blocked_notify_ms = 200;
};

struct node_config {
    std::string name = "tidepool";
    std::string data_dir = "data";
    uint64_t drain_deadline_ms = 5'000;
};

struct tls_config {
    bool enabled = false;
    std::string cert_file = "";
    std::string key_file = "";
};

struct http_config {
    std::string listen = "127.0.0.1:8080";
    uint64_t backlog = 4'096;
    uint64_t header_max_bytes = 16 * 1024;
    uint64_t body_max_bytes = 1024 * 1024;
    uint64_t expansion_max_ratio = 10;
    uint64_t read_timeout_ms = 5'000;
    uint64_t write_timeout_ms = 5'000;
    uint64_t idle_timeout_ms = 60'000;
    uint64_t request_deadline_ms = 5'000;
    uint64_t pipeline_max = 64;
    uint64_t sse_queue_max = 256;
    uint64_t sse_subscribers_max = 1'024;
    tls_config tls;
};

struct ops_config {
    std::string listen = "127.0.0.1:9600";
    uint64_t connections_max = 256;
};

struct admission_config {
    uint64_t connections_max = 20'000;
    uint64_t connections_per_ip_max = 256;
    uint64_t inflight_max = 4'096;
    uint64_t requests_per_s = 0;
    uint64_t requests_per_s_per_ip = 0;
    uint64_t bytes_per_s = 0;
    uint64_t bytes_per_s_per_ip = 0;
    uint64_t memory_max_bytes = 128 * 1024 * 1024;
};

struct auth_config {
    bool required = false;
    std::string keys_file = "";
};

struct groups_config {
    uint64_t ops_shares = 400;
    uint64_t edge_shares = 1'000;
    uint64_t lookup_shares = 600;
    uint64_t gossip_shares = 600;
    uint64_t commit_shares = 1'000;
    uint64_t feed_shares = 600;
    uint64_t crypto_shares = 200;
    uint64_t background_shares = 100;
};

struct log_config {
    std::string level = "info";
    std::string format = "text";
    std::map<std::string, std::string> levels; // by logger
};

struct echo_config {
    bool enabled = true;
    uint64_t mailbox_capacity = 512;
    uint64_t value_max_bytes = 64 * 1024;
    uint64_t keys_max = 100'000;
};

struct config {
    reactor_config reactor;
    node_config node;
    http_config http;
    ops_config ops;
    admission_config admission;
    auth_config auth;
    groups_config groups;
    log_config log;
    echo_config echo;
};

} // namespace tidepool
