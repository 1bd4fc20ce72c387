/* A scripted ACP agent, far faster than any client, so that a run measures the client alone.
 *
 *   agent updates N            a prompt streams N text chunks
 *   agent mix N                likewise, with thoughts and tool calls among them
 *   agent frame BYTES          a prompt sends one update with a text of BYTES bytes
 *   agent roundtrips N FILE    a prompt asks for a file N times and writes the times to FILE
 *
 * It finds the id and the method of a line by scanning: the clients here send nothing that could
 * mislead it.
 */

#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARMUP 500
#define SESSION "\"params\":{\"sessionId\":\"bench\",\"update\":{\"sessionUpdate\":"
#define UPDATE "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\"," SESSION
#define TEXT(kind, text) \
    UPDATE "\"" kind "\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}}}\n"
#define CHUNK TEXT("agent_message_chunk", "00000000 and so the answer goes on a bit")
#define THOUGHT TEXT("agent_thought_chunk", "00000000 I wonder what the next word is.")
#define CALL \
    UPDATE "\"tool_call\",\"toolCallId\":\"call-00000000\",\"title\":\"Read main.py\"," \
    "\"kind\":\"read\",\"status\":\"pending\",\"locations\":[{\"path\":\"/src/main.py\",\"line\":1}]," \
    "\"rawInput\":{\"path\":\"/src/main.py\"}}}}\n"
#define PROGRESS \
    UPDATE "\"tool_call_update\",\"toolCallId\":\"call-00000000\",\"status\":\"in_progress\"}}}\n"
#define RESULT \
    UPDATE "\"tool_call_update\",\"toolCallId\":\"call-00000000\",\"status\":\"completed\"," \
    "\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\"," \
    "\"text\":\"def main():\\n    print('hello')\\n\"}}]}}}\n"

static char *line;
static size_t room;

static void fail(const char *reason) {
    fprintf(stderr, "bench agent: %s\n", reason);
    exit(1);
}

/* Where the value of a key starts, or NULL. */
static char *value_of(char *json, const char *key) {
    char *at = strstr(json, key);
    if (at == NULL)
        return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':')
        at++;
    return at;
}

static void reply(const char *id, const char *result) {
    int length = (int)strcspn(id, ",} ");
    printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s}\n", length, id, result);
    fflush(stdout);
}

/* Each line carries its number, so that no two are alike. */
static void stream(const char *const *templates, int kinds, long count) {
    char *lines[16], *numbers[16];
    size_t sizes[16];
    char number[24];
    for (int kind = 0; kind < kinds; kind++) {
        lines[kind] = strdup(templates[kind]);
        sizes[kind] = strlen(templates[kind]);
        numbers[kind] = strstr(lines[kind], "00000000");
    }
    for (long i = 0; i < count; i++) {
        int kind = (int)(i % kinds);
        snprintf(number, sizeof number, "%08ld", i);
        memcpy(numbers[kind], number, 8);
        fwrite(lines[kind], 1, sizes[kind], stdout);
    }
}

static void stream_text(long count) {
    static const char *const templates[] = {CHUNK};
    stream(templates, 1, count);
}

static void stream_mix(long count) {
    static const char *const templates[] = {
        CHUNK, CHUNK, THOUGHT, CALL, PROGRESS, RESULT, CHUNK, CHUNK, CHUNK, CHUNK};
    stream(templates, 10, count);
}

/* Lines of 79 characters, as in a file: an escape every 80 bytes. */
static void send_frame(long bytes) {
    static const char row[] =
        "The quick brown fox jumps over the lazy dog, and then it does it all over again\\n";
    const long width = (long)sizeof row - 1;
    fputs(UPDATE "\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"", stdout);
    for (long sent = 0; sent + width <= bytes; sent += width)
        fwrite(row, 1, (size_t)width, stdout);
    fputs("\"}}}}\n", stdout);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double round_trip(long id) {
    double start = now();
    printf("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"fs/read_text_file\","
           "\"params\":{\"sessionId\":\"bench\",\"path\":\"/src/main.py\"}}\n", id);
    fflush(stdout);
    if (getline(&line, &room, stdin) < 0)
        fail("the client went away");
    double end = now();
    char *answered = value_of(line, "\"id\"");
    if (answered == NULL || atol(answered) != id || strstr(line, "\"result\"") == NULL)
        fail("that was not the answer");
    return end - start;
}

static void measure_round_trips(long count, const char *path) {
    double *times = calloc((size_t)count, sizeof *times);
    for (long i = 0; i < WARMUP; i++)
        round_trip(i);
    for (long i = 0; i < count; i++)
        times[i] = round_trip(WARMUP + i);
    qsort(times, (size_t)count, sizeof *times, by_size);
    FILE *out = fopen(path, "w");
    if (out == NULL)
        fail("cannot write the times");
    fprintf(out, "{\"median_us\":%.2f,\"p99_us\":%.2f}\n", times[count / 2], times[count * 99 / 100]);
    fclose(out);
}

static void play(int argc, char **argv) {
    const char *scene = argv[1];
    long count = atol(argv[2]);
    if (strcmp(scene, "updates") == 0)
        stream_text(count);
    else if (strcmp(scene, "mix") == 0)
        stream_mix(count);
    else if (strcmp(scene, "frame") == 0)
        send_frame(count);
    else if (strcmp(scene, "roundtrips") == 0 && argc > 3)
        measure_round_trips(count, argv[3]);
    else
        fail("unknown scene");
}

int main(int argc, char **argv) {
    if (argc < 3)
        fail("usage: agent updates|mix|frame|roundtrips N [FILE]");
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    while (getline(&line, &room, stdin) >= 0) {
        char *method = value_of(line, "\"method\""), *found = value_of(line, "\"id\"");
        if (method == NULL || found == NULL)
            continue;
        char id[64];
        snprintf(id, sizeof id, "%s", found);
        if (strncmp(method, "\"initialize\"", 12) == 0) {
            reply(id, "{\"protocolVersion\":1,\"agentCapabilities\":{},\"authMethods\":[]}");
        } else if (strncmp(method, "\"session/new\"", 13) == 0) {
            reply(id, "{\"sessionId\":\"bench\"}");
        } else if (strncmp(method, "\"session/prompt\"", 16) == 0) {
            play(argc, argv);
            reply(id, "{\"stopReason\":\"end_turn\"}");
        } else {
            fail("unknown method");
        }
    }
    return 0;
}
