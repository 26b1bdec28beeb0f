/* SHA-256, HMAC and the signature of Standard Webhooks, with contexts that each thread keeps. */
#include "sys/crypto.h"

#include "base/text.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <pthread.h>

struct contexts {
    EVP_MD_CTX *once;   /* one call hashes all                      */
    EVP_MD_CTX *stream; /* between begin and end                    */
    EVP_MAC_CTX *mac;   /* knows its digest; each call gives a key  */
};

static EVP_MD *sha256;
static EVP_MAC *hmac;
static pthread_key_t key;
static pthread_once_t fetched = PTHREAD_ONCE_INIT;
static _Thread_local struct contexts *mine;

static void contexts_free(void *p)
{
    struct contexts *c = p;

    EVP_MD_CTX_free(c->once);
    EVP_MD_CTX_free(c->stream);
    EVP_MAC_CTX_free(c->mac);
    free(c);
}

/* Fetching walks the providers under locks: once for the process, not once a hash. */
static void fetch(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    int failed = pthread_key_create(&key, contexts_free);
    BS_ASSERT(sha256 && hmac && failed == 0);
}

static struct contexts *contexts_new(void)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                            OSSL_PARAM_construct_end() };
    struct contexts *c = calloc(1, sizeof(*c));
    int failed = pthread_once(&fetched, fetch);

    BS_ASSERT(c && failed == 0);
    c->once = EVP_MD_CTX_new();
    c->stream = EVP_MD_CTX_new();
    c->mac = EVP_MAC_CTX_new(hmac);
    BS_ASSERT(c->once && c->stream && c->mac);
    int ok = EVP_DigestInit_ex2(c->once, sha256, NULL) &&
             EVP_DigestInit_ex2(c->stream, sha256, NULL) && EVP_MAC_CTX_set_params(c->mac, params);
    BS_ASSERT(ok);
    failed = pthread_setspecific(key, c);
    BS_ASSERT(failed == 0);
    return c;
}

/* Without hashes nothing here can go on, so a failure to make the contexts ends the process. */
static struct contexts *contexts(void)
{
    if (!mine)
        mine = contexts_new();
    return mine;
}

static void begin(EVP_MD_CTX *c)
{
    int ok = EVP_DigestInit_ex2(c, NULL, NULL);

    BS_ASSERT(ok);
}

static void add(EVP_MD_CTX *c, const void *p, size_t n)
{
    int ok = EVP_DigestUpdate(c, p, n);

    BS_ASSERT(ok);
}

static struct bs_sha256 end(EVP_MD_CTX *c)
{
    struct bs_sha256 hash;
    unsigned n = 0;
    int ok = EVP_DigestFinal_ex(c, hash.b, &n);

    BS_ASSERT(ok && n == sizeof(hash.b));
    return hash;
}

struct bs_sha256 bs_sha256_of(struct bs_str s)
{
    EVP_MD_CTX *c = contexts()->once;

    begin(c);
    add(c, s.p, s.n);
    return end(c);
}

void bs_sha256_begin(void)
{
    begin(contexts()->stream);
}

void bs_sha256_add(const void *p, size_t n)
{
    add(contexts()->stream, p, n);
}

struct bs_sha256 bs_sha256_end(void)
{
    return end(contexts()->stream);
}

static EVP_MAC_CTX *mac_begin(struct bs_str secret)
{
    EVP_MAC_CTX *c = contexts()->mac;
    /* A NULL key would mean the key of the call before. */
    const void *bytes = secret.n ? secret.p : "";
    int ok = EVP_MAC_init(c, bytes, secret.n, NULL);

    BS_ASSERT(ok);
    return c;
}

static void mac_add(EVP_MAC_CTX *c, struct bs_str s)
{
    int ok = s.n == 0 || EVP_MAC_update(c, (const unsigned char *)s.p, s.n);

    BS_ASSERT(ok);
}

static struct bs_sha256 mac_end(EVP_MAC_CTX *c)
{
    struct bs_sha256 tag;
    size_t n = 0;
    int ok = EVP_MAC_final(c, tag.b, &n, sizeof(tag.b));

    BS_ASSERT(ok && n == sizeof(tag.b));
    return tag;
}

struct bs_sha256 bs_hmac_sha256(struct bs_str secret, struct bs_str data)
{
    EVP_MAC_CTX *c = mac_begin(secret);

    mac_add(c, data);
    return mac_end(c);
}

bool bs_equal_constant_time(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}

bs_rc bs_secret_read(struct bs_arena *a, struct bs_str text, struct bs_secret *ret,
                     struct bs_err *err)
{
    static const struct bs_str prefix = { "whsec_", 6 };
    struct bs_str bytes;

    if (bs_str_starts(text, prefix)) {
        struct bs_str encoded = { text.p + prefix.n, text.n - prefix.n };

        /* The reader's own message could quote nothing of a secret, but it need not try. */
        if (bs_base64_read(a, encoded, &bytes, NULL) != BS_OK)
            return bs_fail(err, BS_E_INVALID, "the secret after whsec_ is not base64");
    } else {
        bytes = bs_arena_str(a, text);
    }
    if (!bytes.p)
        return bs_fail(err, BS_E_NOMEM, "no memory for a secret");
    if (bytes.n == 0)
        return bs_fail(err, BS_E_INVALID, "the secret is empty");
    ret->bytes = bytes;
    return BS_OK;
}

void bs_webhook_sign(struct bs_buf *out, const struct bs_secret *secret, struct bs_str id,
                     int64_t timestamp_s, struct bs_str body)
{
    EVP_MAC_CTX *c = mac_begin(secret->bytes);
    char seconds[24];
    int n = snprintf(seconds, sizeof(seconds), ".%lld.", (long long)timestamp_s);

    BS_ASSERT(n > 0 && n < (int)sizeof(seconds));
    mac_add(c, id);
    mac_add(c, (struct bs_str){ seconds, (size_t)n });
    mac_add(c, body);
    struct bs_sha256 tag = mac_end(c);
    bs_buf_addz(out, "v1,");
    bs_base64_write(out, (struct bs_str){ (const char *)tag.b, sizeof(tag.b) });
}
