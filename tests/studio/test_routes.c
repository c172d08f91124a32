/* test_routes.c - the table of routes, what each answers, who may ask, what may be opened and what is hidden. No server. */
#include "../../tools/studio/guard.h"
#include "../../tools/studio/routes.h"
#include "../../tools/studio/secrets.h"
#include "../../tools/studio/verbs.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/cjson.h"
#include "test.h"

static struct studio s;
static char home[64], root[80];

/* The status of a request; *r is to be freed. */
static int ask(const char *method, const char *target, const char *body, const struct studio_headers *headers, struct studio_reply *r)
{
    struct studio_request q = {.method = method, .target = target, .body = body, .body_size = body ? strlen(body) : 0, .headers = headers};
    studio_answer(&s, &q, r);
    return r->status;
}

static int status_of(const char *method, const char *target, const char *body, const struct studio_headers *headers)
{
    struct studio_reply r;
    int status = ask(method, target, body, headers, &r);
    studio_reply_free(&r);
    return status;
}

static int begin(void **state)
{
    (void)state;
    snprintf(home, sizeof home, "%s", test_folder());
    snprintf(root, sizeof root, "%s/root", home);
    assert_int_equal(mkdir(root, 0755), 0);
    char *real = realpath(root, NULL);
    assert_non_null(real);
    assert_int_equal(chdir(real), 0); /* as tools/studio.c does */
    s = (struct studio){.root = real, .once = true, .host = "127.0.0.1", .port = 8642};
    snprintf(s.build, sizeof s.build, "%s", home);
    return 0;
}

static int end(void **state)
{
    (void)state;
    free((char *)(uintptr_t)s.root);
    assert_int_equal(chdir("/"), 0);
    return tune_file_remove_folder(home);
}

/* ---- the table ---- */

static bool has_required(const struct studio_route *route)
{
    for (const struct studio_parameter *p = route->parameters; p->name; p++)
        if (p->required || p->in == STUDIO_IN_PATH)
            return true;
    return false;
}

static void test_table(void **state)
{
    (void)state;
    for (int t = 0; studio_routes[t]; t++)
        for (const struct studio_route *a = studio_routes[t]; a->method; a++) {
            int named = 0, wanted = 0;
            if (!a->name || !a->summary || !a->type || !a->answer || *a->path != '/')
                fail_msg("%s: lacks a name, a summary, a type or an answer", a->path);
            for (const char *at = a->path; *at; at++)
                wanted += *at == '{';
            for (const struct studio_parameter *p = a->parameters; p->name; p++) {
                char in_path[80];
                snprintf(in_path, sizeof in_path, "{%s}", p->name);
                named += p->in == STUDIO_IN_PATH;
                if (!p->help || !*p->help || (p->in == STUDIO_IN_PATH) != !!strstr(a->path, in_path))
                    fail_msg("%s %s: parameter %s has no help, or is not in the path", a->method, a->path, p->name);
                if (p->type == STUDIO_JSON && p->in != STUDIO_IN_BODY)
                    fail_msg("%s: %s is JSON outside a body", a->path, p->name);
                if (p->in == STUDIO_IN_BODY && !strcmp(a->method, "GET"))
                    fail_msg("%s: a body of GET", a->path);
                for (const struct studio_parameter *o = a->parameters; o < p; o++)
                    if (!strcmp(o->name, p->name))
                        fail_msg("%s: two parameters %s", a->path, p->name);
            }
            if (named != wanted)
                fail_msg("%s: %d parameters in the path, %d documented", a->path, wanted, named);
            for (int u = 0; studio_routes[u]; u++)
                for (const struct studio_route *b = studio_routes[u]; b->method; b++)
                    if (a != b && (!strcmp(a->name, b->name) || (!strcmp(a->path, b->path) && !strcmp(a->method, b->method)) ||
                                   (a->verb && b->verb && !strcmp(a->verb, b->verb))))
                        fail_msg("%s and %s share a name, a verb, or method and path", a->path, b->path);
        }
}

/* Each route is in the description, and each GET that needs nothing answers as described. */
static void test_documented(void **state)
{
    struct studio_reply r;
    (void)state;
    assert_int_equal(ask("GET", "/openapi.json", NULL, NULL, &r), 200);
    char *text = strndup(r.data, r.size);
    cJSON *json = tune_cjson_line(text);
    free(text);
    studio_reply_free(&r);
    assert_non_null(json);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "openapi")->valuestring, "3.1.0");
    const cJSON *paths = cJSON_GetObjectItemCaseSensitive(json, "paths"), *path, *operation;
    int count = 0, documented = 0;
    for (int t = 0; studio_routes[t]; t++)
        for (const struct studio_route *route = studio_routes[t]; route->method; route++, count++) {
            operation = cJSON_GetObjectItem(cJSON_GetObjectItemCaseSensitive(paths, route->path), route->method);
            if (!operation || !cJSON_GetObjectItemCaseSensitive(operation, "tags"))
                fail_msg("%s %s is not described, or has no tag", route->method, route->path);
            if (strcmp(route->method, "GET") || has_required(route))
                continue;
            int status = ask("GET", route->path, NULL, NULL, &r);
            if (!(status == 200 && !strcmp(r.type, route->type)) && !(status == 404 && !strcmp(r.type, "application/problem+json")))
                fail_msg("%s: %d %s: %.*s", route->path, status, r.type, (int)r.size, r.data ? r.data : "");
            if (status == 200 && !strcmp(route->type, "application/json")) {
                text = strndup(r.data, r.size);
                cJSON *answer = tune_cjson_line(text);
                if (!answer)
                    fail_msg("%s: no JSON: %s", route->path, text);
                cJSON_Delete(answer);
                free(text);
            }
            studio_reply_free(&r);
        }
    cJSON_ArrayForEach(path, paths)
        cJSON_ArrayForEach(operation, path)
            documented++;
    assert_int_equal(count, documented);
    cJSON_Delete(json);
}

/* Bad requests to every route: a problem, never a success by accident, never a crash. */
static void test_bad(void **state)
{
    (void)state;
    for (int t = 0; studio_routes[t]; t++)
        for (const struct studio_route *route = studio_routes[t]; route->method; route++) {
            static const char *const segments[] = {"..", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%2Fetc%2Fpasswd", "a%00b", "%ff", ".", "no%20such"};
            for (size_t i = 0; i < sizeof segments / sizeof *segments; i++) {
                char target[400] = "";
                for (const char *at = route->path; *at; at++) {
                    size_t n = strlen(target);
                    if (*at == '{')
                        snprintf(target + n, sizeof target - n, "%s", segments[i]), at = strchr(at, '}');
                    else
                        target[n] = *at, target[n + 1] = 0;
                }
                if (!strchr(route->path, '{'))
                    snprintf(target + strlen(target), 30, "?no_such=%s", segments[i]);
                struct studio_reply r;
                int status = ask(route->method, target, "{\"no such member\":1}", NULL, &r);
                if (status < 400 || status > 499 || strcmp(r.type, "application/problem+json"))
                    fail_msg("%s %s: %d", route->method, target, status);
                studio_reply_free(&r);
            }
        }
}

/* Names from folders of others may be no UTF-8; the answer is JSON all the same. */
static void test_not_utf8(void **state)
{
    struct studio_reply r = {.out = open_memstream(&r.data, &r.size)};
    (void)state;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", "a\xff\xc3" "b\xc3\xa9\xe2\x82");
    assert_ok(studio_put_json(&r, json));
    fclose(r.out);
    assert_string_equal(r.data, "{\"name\":\"a??b\xc3\xa9??\"}");
    free(r.data);
    assert_int_equal(ask("GET\xff", "/\xfe", NULL, NULL, &r), 404);
    assert_true(tune_utf8_valid(r.data, r.size, NULL));
    studio_reply_free(&r);
}

/* ---- who may ask ---- */

static void test_guard(void **state)
{
    static const struct { struct studio_headers h; const char *method; int status; } cases[] = {
        {{.host = "127.0.0.1:8642"}, "GET", 200},
        {{.host = "localhost:8642"}, "GET", 200},
        {{.host = "LOCALHOST"}, "GET", 200},
        {{.host = "[::1]:8642"}, "GET", 200},
        {{.host = "localhost:9000"}, "GET", 200}, /* ssh -L */
        {{.host = NULL}, "GET", 400},
        {{.host = ""}, "GET", 421},
        {{.host = "evil.example:8642"}, "GET", 421},
        {{.host = "localhost.evil.example"}, "GET", 421},
        {{.host = "127.0.0.1.evil.example"}, "GET", 421},
        {{.host = "localhost:8642@evil.example"}, "GET", 421},
        {{.host = "localhost:"}, "GET", 421},
        {{.host = "[::1"}, "GET", 421},
        {{.host = "[::2]:8642"}, "GET", 421},
        {{.host = "localhost:8642", .origin = "http://localhost:8642"}, "GET", 200},
        {{.host = "localhost:8642", .origin = "http://localhost:8643"}, "GET", 403},
        {{.host = "localhost:8642", .origin = "http://evil.example"}, "GET", 403},
        {{.host = "localhost:8642", .origin = "null"}, "GET", 403},
        {{.host = "localhost:8642", .origin = ""}, "GET", 403},
        {{.host = "localhost:8642", .site = "cross-site", .mode = "no-cors", .dest = "script"}, "GET", 403},
        {{.host = "localhost:8642", .site = "same-site", .mode = "no-cors", .dest = "image"}, "GET", 403},
        {{.host = "localhost:8642", .site = "cross-site", .mode = "navigate", .dest = "iframe"}, "GET", 403},
        {{.host = "localhost:8642", .site = "cross-site", .mode = "navigate", .dest = "document"}, "GET", 200},
        {{.host = "localhost:8642", .site = "cross-site", .mode = "navigate", .dest = "document", .type = "application/json"}, "POST", 403},
        {{.host = "localhost:8642", .site = "same-origin"}, "GET", 200},
        {{.host = "localhost:8642", .site = "none"}, "GET", 200},
        {{.host = "localhost:8642"}, "POST", 415},
        {{.host = "localhost:8642", .type = "text/plain"}, "POST", 415},
        {{.host = "localhost:8642", .type = "application/jsonx"}, "DELETE", 415},
        {{.host = "localhost:8642", .type = "application/x-www-form-urlencoded"}, "PUT", 415},
        {{.host = "localhost:8642", .type = "Application/JSON; charset=utf-8"}, "POST", 405},
        {{.host = "localhost:8642", .type = "application/json", .origin = "http://evil.example"}, "POST", 403},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = status_of(cases[i].method, "/healthz", NULL, &cases[i].h);
        if (status != cases[i].status)
            fail_msg("case %zu: %d, expected %d", i, status, cases[i].status);
    }
}

static void test_token(void **state)
{
    struct studio_reply r;
    char right[128], cookie[128], target[160], longer[200];
    (void)state;
    assert_ok(studio_new_token(&s));
    assert_int_equal(strlen(s.token), 64);
    const struct studio_headers bare = {.host = "gpu7:8642"};
    assert_int_equal(status_of("GET", "/", NULL, &bare), 401);
    assert_int_equal(status_of("GET", "/?token=", NULL, &bare), 401);
    snprintf(right, sizeof right, "Bearer %s", s.token);
    snprintf(cookie, sizeof cookie, "a=b; studio-8642=%s; c", s.token);
    assert_int_equal(status_of("GET", "/healthz", NULL, &(struct studio_headers){.host = "gpu7:8642", .authorization = right}), 200);
    assert_int_equal(status_of("GET", "/healthz", NULL, &(struct studio_headers){.host = "gpu7:8642", .cookie = cookie}), 200);
    snprintf(longer, sizeof longer, "%sa", right);
    assert_int_equal(status_of("GET", "/healthz", NULL, &(struct studio_headers){.host = "gpu7:8642", .authorization = longer}), 401);
    right[20] ^= 1;
    assert_int_equal(status_of("GET", "/healthz", NULL, &(struct studio_headers){.host = "gpu7:8642", .authorization = right}), 401);
    /* The address that was printed: a cookie, and on without the token. */
    snprintf(target, sizeof target, "/?a=1&token=%s&b=2", s.token);
    assert_int_equal(ask("GET", target, NULL, &bare, &r), 303);
    assert_string_equal(r.location, "/?a=1&b=2");
    assert_non_null(strstr(r.cookie, s.token));
    assert_non_null(strstr(r.cookie, "HttpOnly; SameSite=Strict"));
    assert_null(memmem(r.data, r.size, s.token, 64));
    studio_reply_free(&r);
    snprintf(target, sizeof target, "//evil.example/?token=%s", s.token);
    assert_int_equal(ask("GET", target, NULL, &bare, &r), 303);
    assert_string_equal(r.location, "/");
    studio_reply_free(&r);
    /* A cookie alone does not let pages of others write. */
    assert_int_equal(status_of("POST", "/healthz", "{}", &(struct studio_headers){.host = "gpu7", .cookie = cookie, .type = "application/json", .origin = "http://evil.example"}), 403);
    s.token[0] = 0;
    assert_true(studio_is_loopback("127.0.0.1") && studio_is_loopback("127.9.9.9") && studio_is_loopback("::1"));
    assert_false(studio_is_loopback("0.0.0.0") || studio_is_loopback("::") || studio_is_loopback("192.168.0.1") || studio_is_loopback("128.0.0.1"));
}

/* ---- what may be opened ---- */

static void put(const char *path, const char *text)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", home, path);
    assert_ok(tune_file_write(whole, text, strlen(text)));
}

static void link_to(const char *target, const char *path)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", home, path);
    assert_int_equal(symlink(target, whole), 0);
}

typedef int opener(const struct studio *, const char *, int);

static void opens(opener *open_by, const char *path, const char *text)
{
    char got[64] = "";
    int fd = open_by(&s, path, O_RDONLY);
    if (fd < 0)
        fail_msg("%s: %s", path, tune_error_message());
    assert_true(read(fd, got, sizeof got - 1) >= 0);
    close(fd);
    assert_string_equal(got, text);
}

static void refuses(opener *open_by, const char *path, enum tune_error_kind kind)
{
    int fd = open_by(&s, path, O_RDONLY);
    if (fd >= 0)
        fail_msg("%s was opened", path);
    assert_int_equal(tune_error_kind(), kind);
}

static void test_confined(void **state)
{
    static opener *const openers[] = {studio_open, studio_open_by_steps};
    char in_root[200], fifo[200];
    (void)state;
    put("secret", "secret"), put("root/a", "good");
    snprintf(in_root, sizeof in_root, "%s/sub", s.root);
    assert_int_equal(mkdir(in_root, 0755), 0);
    put("root/sub/b", "good");
    snprintf(fifo, sizeof fifo, "%s/fifo", s.root);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    link_to("../secret", "root/out"), link_to("/etc", "root/etc"), link_to("sub", "root/in"), link_to(in_root, "root/absolute");
    link_to("loop", "root/loop"), link_to("/proc/self/root", "root/magic"), link_to("../../root/a", "root/sub/round"), link_to("nowhere", "root/dangling");
    for (int i = 0; i < 2; i++) {
        opener *by = openers[i];
        opens(by, "a", "good"), opens(by, "./sub//b", "good"), opens(by, "in/b", "good"), opens(by, "absolute/b", "good");
        refuses(by, "../secret", TUNE_ERROR_USAGE), refuses(by, "sub/../../secret", TUNE_ERROR_USAGE), refuses(by, "..", TUNE_ERROR_USAGE);
        refuses(by, "sub/..", TUNE_ERROR_USAGE), refuses(by, "/etc/passwd", TUNE_ERROR_USAGE);
        refuses(by, "out", TUNE_ERROR_USAGE), refuses(by, "etc/passwd", TUNE_ERROR_USAGE), refuses(by, "magic/etc/passwd", TUNE_ERROR_USAGE);
        refuses(by, "loop", TUNE_ERROR_FAILED), refuses(by, "fifo", TUNE_ERROR_FAILED), refuses(by, "nothing", TUNE_ERROR_FAILED);
        refuses(by, "a/b", TUNE_ERROR_FAILED), refuses(by, "dangling", TUNE_ERROR_FAILED);
        assert_int_equal(by(&s, "nothing", O_RDONLY), -1);
        assert_int_equal(errno, ENOENT);
        int fd = by(&s, "", O_RDONLY | O_DIRECTORY);
        assert_true(fd >= 0);
        close(fd);
        fd = by(&s, i ? "new1" : "new0", O_WRONLY | O_CREAT | O_EXCL);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(by(&s, "out", O_WRONLY | O_CREAT), -1);
    }
}

/* A folder that becomes a link out of the root, and back, while it is read. */
static volatile bool exchange_ends;
static void *exchange(void *context)
{
    char folder[200], good[200], bad[200];
    (void)context;
    snprintf(folder, sizeof folder, "%s/now", s.root);
    snprintf(good, sizeof good, "%s/kept", s.root);
    snprintf(bad, sizeof bad, "%s/badly", s.root);
    while (!exchange_ends) {
        if (rename(folder, good) || symlink(home, bad) || rename(bad, folder) || unlink(folder) || rename(good, folder))
            return "failed";
    }
    return NULL;
}

static void test_races(void **state)
{
    char folder[200];
    pthread_t other;
    void *failed;
    int opened = 0;
    (void)state;
    put("data", "secret");
    snprintf(folder, sizeof folder, "%s/now", s.root);
    assert_int_equal(mkdir(folder, 0755), 0);
    put("root/now/data", "good");
    exchange_ends = false;
    assert_int_equal(pthread_create(&other, NULL, exchange, NULL), 0);
    for (int i = 0; i < 20000; i++) {
        char got[16] = "";
        int fd = i % 2 ? studio_open(&s, "now/data", O_RDONLY) : studio_open_by_steps(&s, "now/data", O_RDONLY);
        if (fd < 0)
            continue;
        opened++;
        assert_true(read(fd, got, sizeof got - 1) > 0);
        close(fd);
        assert_string_equal(got, "good");
    }
    exchange_ends = true;
    pthread_join(other, &failed);
    assert_null(failed);
    assert_true(opened > 0);
}

/* ---- secrets ---- */

static void test_secrets(void **state)
{
    static const char *const secret[] = {"HF_TOKEN", "hub-token", "token", "apiKey", "API_KEY", "password", "DB_PASSWORD_FILE", "--hub-token", "clientSecret", "AWS_SECRET_ACCESS_KEY"};
    static const char *const plain[] = {"pad_token", "append_token", "add-tokens", "max_new_tokens", "tokens", "tokenizer", "keys", "monkey", "lr", "eos-token", "keyboard", "", "tokens_per_s"};
    struct studio_reply r;
    (void)state;
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        if (!studio_is_secret(secret[i]))
            fail_msg("%s is shown", secret[i]);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (studio_is_secret(plain[i]))
            fail_msg("%s is hidden", plain[i]);
    cJSON *json = tune_cjson_line("{\"hf_token\":\"hf_1\",\"lr\":\"1\",\"argv\":[\"x\",\"--hub-token\",\"hf_2\",\"--key=hf_3\",\"HF_TOKEN=hf_4\",\"--lr\",\"2\"],\"in\":{\"password\":\"hf_5\",\"token\":7}}");
    studio_hide(json);
    char *text = cJSON_PrintUnformatted(json);
    assert_string_equal(text, "{\"hf_token\":\"(hidden)\",\"lr\":\"1\",\"argv\":[\"x\",\"--hub-token\",\"(hidden)\",\"--key=(hidden)\",\"HF_TOKEN=(hidden)\",\"--lr\",\"2\"],"
                              "\"in\":{\"password\":\"(hidden)\",\"token\":7}}");
    cJSON_free(text);
    cJSON_Delete(json);
    /* What the environment has does not show in any answer: here as a part of the request that a problem repeats. */
    setenv("HF_TOKEN", "hf_abcdefgh", 1), setenv("SHORT_TOKEN", "no", 1), setenv("NOT_A_TOKENIZER", "whole_text", 1);
    studio_find_secrets(&s);
    assert_int_equal(ask("GET", "/healthz?no=hf_abcdefgh&hf_abcdefgh=whole_text", NULL, NULL, &r), 400);
    assert_null(memmem(r.data, r.size, "hf_abcdefgh", 11));
    studio_reply_free(&r);
    assert_int_equal(ask("GET", "/hf_abcdefgh/whole_text", NULL, NULL, &r), 404);
    assert_null(memmem(r.data, r.size, "hf_abcdefgh", 11));
    assert_non_null(memmem(r.data, r.size, "***********/whole_text", 22));
    studio_reply_free(&r);
    studio_forget_secrets(&s);
    unsetenv("HF_TOKEN");
}

/* ---- stale edits, members of a problem, tables ---- */

static void test_match(void **state)
{
    static const struct { const char *given, *etag; int status; } cases[] = {
        {NULL, "\"a\"", 0}, {"\"a\"", "\"a\"", 0}, {"\"b\", \"a\"", "\"a\"", 0}, {"*", "\"a\"", 0},
        {"\"b\"", "\"a\"", 409}, {"*", "", 409}, {"a", "\"a\"", 409}, {"\"a", "\"a\"", 409}, {"", "\"a\"", 409},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct studio_request q = {.if_match = cases[i].given};
        struct studio_reply r = {0};
        snprintf(r.etag, sizeof r.etag, "%s", cases[i].etag);
        int status = studio_match(&q, &r);
        if ((status < 0) != (cases[i].status == 409) || r.status != cases[i].status)
            fail_msg("case %zu: %d", i, r.status);
    }
}

static void test_print(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    (void)state;
    cJSON *json = tune_cjson_line("{\"total\":2,\"name\":\"a\\u001b[1mb\",\"runs\":[{\"id\":\"x\",\"loss\":1.25,\"values\":{\"lr\":0.1},\"list\":[1]},{\"id\":\"y\",\"loss\":null,\"busy\":true}]}");
    assert_ok(studio_print_answer(json, 0, out));
    cJSON_Delete(json);
    json = tune_cjson_line("{\"empty\":\"\",\"none\":null}");
    cJSON *many = cJSON_AddArrayToObject(json, "long");
    for (int i = 0; i < 60; i++)
        cJSON_AddItemToArray(many, cJSON_CreateNumber(i));
    assert_ok(studio_print_answer(json, 0, out));
    cJSON_Delete(json);
    json = tune_cjson_line("{\"columns\":[{\"name\":\"n\"}],\"rows\":[[1],[2]],\"none\":null}");
    assert_ok(studio_print_answer(json, 0, out));
    cJSON_Delete(json);
    fclose(out);
    assert_null(strchr(text, 27));
    assert_non_null(strstr(text, "total: 2\n"));
    assert_non_null(strstr(text, "long: 60 members, which --json shows\n"));
    assert_null(strstr(text, "empty"));
    assert_non_null(strstr(text, "\nruns\nid  loss   lr  busy\n"));
    assert_non_null(strstr(text, "n\n1\n2\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table), cmocka_unit_test(test_documented), cmocka_unit_test(test_bad), cmocka_unit_test(test_not_utf8), cmocka_unit_test(test_guard),
        cmocka_unit_test(test_token), cmocka_unit_test(test_confined), cmocka_unit_test(test_races), cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_match), cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
