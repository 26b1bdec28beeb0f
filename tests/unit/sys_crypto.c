/* Hashes and signatures against published vectors. */
#include "sys/crypto.h"

#include "base/text.h"
#include "check.h"

#include <pthread.h>

static void assert_hash(struct bs_sha256 hash, const char *wanted)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 100 };

    bs_hex_write(&b, (struct bs_str){ (const char *)hash.b, sizeof(hash.b) });
    assert_string_equal(bs_buf_str(&b).p, wanted);
}

static void sha256_knows_the_vectors_of_fips_180(void **state)
{
    (void)state;
    assert_hash(bs_sha256_of(BS_STR("abc")),
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_hash(bs_sha256_of(BS_STR("")),
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hash(bs_sha256_of(BS_STR_NONE),
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hash(bs_sha256_of(BS_STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_stream_is_its_own_and_equals_the_whole(void **state)
{
    (void)state;
    bs_sha256_begin();
    bs_sha256_add("a", 1);
    assert_hash(bs_sha256_of(BS_STR("")),
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    bs_sha256_add("", 0);
    bs_sha256_add("bc", 2);
    assert_hash(bs_sha256_end(),
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    bs_sha256_begin();
    bs_sha256_add("forgotten", 9);
    bs_sha256_begin();
    assert_hash(bs_sha256_end(),
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void hmac_knows_the_vectors_of_rfc_4231(void **state)
{
    char key[131];

    (void)state;
    memset(key, 0x0b, 20);
    assert_hash(bs_hmac_sha256((struct bs_str){ key, 20 }, BS_STR("Hi There")),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert_hash(bs_hmac_sha256(BS_STR("Jefe"), BS_STR("what do ya want for nothing?")),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    assert_hash(bs_hmac_sha256((struct bs_str){ key, sizeof(key) },
                               BS_STR("Test Using Larger Than Block-Size Key - Hash Key First")),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    assert_hash(bs_hmac_sha256(BS_STR_NONE, BS_STR_NONE),
                "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void a_key_never_stays_for_the_next_call(void **state)
{
    (void)state;
    assert_hash(bs_hmac_sha256(BS_STR("Jefe"), BS_STR("what do ya want for nothing?")),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    assert_hash(bs_hmac_sha256(BS_STR(""), BS_STR("")),
                "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void constant_time_comparison_compares(void **state)
{
    (void)state;
    assert_true(bs_equal_constant_time("abc", "abd", 2));
    assert_false(bs_equal_constant_time("abc", "abd", 3));
    assert_true(bs_equal_constant_time("a", "b", 0));
}

static void a_secret_is_its_bytes(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_secret s;
    struct bs_err err;

    (void)state;
    assert_int_equal(bs_secret_read(&a, BS_STR("whsec_Zm9vYmFy"), &s, NULL), BS_OK);
    assert_str(s.bytes, "foobar");
    assert_int_equal(bs_secret_read(&a, BS_STR("Zm9vYmFy"), &s, NULL), BS_OK);
    assert_str(s.bytes, "Zm9vYmFy");
    assert_int_equal(bs_secret_read(&a, BS_STR("WHSEC_Zm9v"), &s, NULL), BS_OK);
    assert_str(s.bytes, "WHSEC_Zm9v");
    s.bytes = BS_STR("same");
    assert_int_equal(bs_secret_read(&a, BS_STR(""), &s, &err), BS_E_INVALID);
    assert_int_equal(bs_secret_read(&a, BS_STR("whsec_"), &s, &err), BS_E_INVALID);
    assert_int_equal(bs_secret_read(&a, BS_STR("whsec_hunter2!"), &s, &err), BS_E_INVALID);
    assert_null(strstr(err.msg, "hunter2"));
    assert_str(s.bytes, "same");
}

static void a_webhook_signature_is_that_of_standard_webhooks(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 200 };
    struct bs_secret s;

    (void)state;
    assert_int_equal(bs_secret_read(&a, BS_STR("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), &s, NULL),
                     BS_OK);
    bs_webhook_sign(&b, &s, BS_STR("msg_p5jXN8AQM9LWM0D4loKWxJek"), 1614265330,
                    BS_STR("{\"test\": 2432232314}"));
    assert_buf(&b, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

static void *hash_many(void *arg)
{
    struct bs_sha256 wanted = bs_sha256_of(bs_str_of(arg));
    struct bs_sha256 tag = bs_hmac_sha256(bs_str_of(arg), bs_str_of(arg));

    for (int i = 0; i < 2000; i++) {
        struct bs_sha256 hash = bs_sha256_of(bs_str_of(arg));
        struct bs_sha256 again = bs_hmac_sha256(bs_str_of(arg), bs_str_of(arg));

        if (memcmp(hash.b, wanted.b, sizeof(hash.b)) != 0 ||
            memcmp(again.b, tag.b, sizeof(tag.b)) != 0)
            return arg;
    }
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
    static char texts[4][8] = { "one", "two", "three", "four" };
    pthread_t threads[4];
    void *bad;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hash_many, texts[i]), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &bad), 0);
        assert_null(bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_knows_the_vectors_of_fips_180),
        cmocka_unit_test(a_stream_is_its_own_and_equals_the_whole),
        cmocka_unit_test(hmac_knows_the_vectors_of_rfc_4231),
        cmocka_unit_test(a_key_never_stays_for_the_next_call),
        cmocka_unit_test(constant_time_comparison_compares),
        cmocka_unit_test(a_secret_is_its_bytes),
        cmocka_unit_test(a_webhook_signature_is_that_of_standard_webhooks),
        cmocka_unit_test(threads_do_not_disturb_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
