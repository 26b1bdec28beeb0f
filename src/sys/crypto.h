/* Hashes and signatures through OpenSSL 3 EVP. Thread-safe: each thread has its own context. */
#pragma once

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/secret.h"

struct bs_sha256 {
    uint8_t b[32];
};

struct bs_sha256 bs_sha256_of(struct bs_str s);
/* Streaming, for canonical forms. One at a time per thread: begin, any number of adds, end. */
void bs_sha256_begin(void);
void bs_sha256_add(const void *p, size_t n);
struct bs_sha256 bs_sha256_end(void);
struct bs_sha256 bs_hmac_sha256(struct bs_str key, struct bs_str data);
bool bs_equal_constant_time(const void *a, const void *b, size_t n);

/* Standard Webhooks 1.0.0 (github.com/standard-webhooks/standard-webhooks): "whsec_" + base64 → its
 * bytes; any other text → its own bytes. */
BS_NODISCARD bs_rc bs_secret_read(struct bs_arena *a, struct bs_str text, struct bs_secret *ret,
                                  struct bs_err *err);
/* Appends "v1,<base64 of HMAC-SHA256(id.timestamp.body)>". */
void bs_webhook_sign(struct bs_buf *out, const struct bs_secret *key, struct bs_str id,
                     int64_t timestamp_s, struct bs_str body);
