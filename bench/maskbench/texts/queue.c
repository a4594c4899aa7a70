/* A bounded queue of jobs with a fixed number of slots, and a small table that counts words. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#define SLOTS 64
#define BUCKETS 1021

typedef int (*handler_t)(void *context, const char *text, size_t length);

struct job {
    unsigned long id;
    handler_t run;
    void *context;
    char text[128];
    size_t length;
};

struct queue {
    struct job slots[64];
    unsigned int head, tail;
    int closed;
};

enum outcome { DONE, EMPTY, FULL, CLOSED = 8, FAILED = 16 };

static unsigned long next_id = 1;

void queue_open(struct queue *q) {
    q->head = 0;
    q->tail = 0;
    q->closed = 0;
}

static unsigned int queue_size(const struct queue *q) {
    return q->tail - q->head;
}

/* Put a job at the end.  The text is copied; what does not fit is cut off. */
enum outcome queue_put(struct queue *q, handler_t run, void *context, const char *text) {
    struct job *slot;
    size_t length = strlen(text);

    if (q->closed) {
        return CLOSED;
    }
    if (queue_size(q) == 64u) {
        return FULL;
    }
    if (length >= sizeof(slot->text)) {
        length = sizeof(slot->text) - 1;
    }
    slot = &q->slots[q->tail % 64u];
    slot->id = next_id++;
    slot->run = run;
    slot->context = context;
    memcpy(slot->text, text, length);
    slot->text[length] = '\0';
    slot->length = length;
    q->tail += 1;
    return DONE;
}

/* Run the oldest job. */
enum outcome queue_step(struct queue *q) {
    struct job *slot;
    if (queue_size(q) == 0) {
        return q->closed ? CLOSED : EMPTY;
    }
    slot = &q->slots[q->head % 64u];
    q->head++;
    return slot->run(slot->context, slot->text, slot->length) == 0 ? DONE : FAILED;
}

struct word {
    struct word *next;
    char *text;
    unsigned int count;
};

struct table {
    struct word *buckets[1021];
    size_t words;
};

static unsigned long hash(const char *text, size_t length) {
    unsigned long value = 5381;
    size_t i;
    for (i = 0; i < length; i++) {
        value = ((value << 5) + value) ^ (unsigned char)text[i];
    }
    return value;
}

static struct word *find(struct table *t, const char *text, size_t length) {
    unsigned long bucket = hash(text, length) % 1021;
    struct word *w = t->buckets[bucket];
    while (w != NULL && (strncmp(w->text, text, length) != 0 || w->text[length] != '\0')) {
        w = w->next;
    }
    if (w == NULL) {
        w = malloc(sizeof *w);
        if (w == NULL) {
            return NULL;
        }
        w->text = calloc(length + 1, 1);
        if (!w->text) {
            free(w);
            return NULL;
        }
        memcpy(w->text, text, length);
        w->count = 0;
        w->next = t->buckets[bucket];
        t->buckets[bucket] = w;
        t->words++;
    }
    return w;
}

static int is_letter(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* A handler: count the words of a text. */
int count_words(void *context, const char *text, size_t length) {
    struct table *t = (struct table *)context;
    size_t begin = 0, end;

    do {
        while (begin < length && !is_letter(text[begin])) {
            begin++;
        }
        for (end = begin; end < length && is_letter(text[end]); ++end)
            ;
        if (end > begin) {
            struct word *w = find(t, text + begin, end - begin);
            if (w == NULL) goto out_of_memory;
            w->count += 1u;
        }
        begin = end;
    } while (begin < length);
    return 0;

out_of_memory:
    return -1;
}

static const double weights[4] = { 0.5, 1.25e-3, .75, 2.0 };

double score(const struct table *t, int kind) {
    double sum = 0.0;
    size_t i;
    for (i = 0; i < 1021; i++) {
        const struct word *w;
        for (w = t->buckets[i]; w; w = w->next) {
            switch (kind) {
            case 0:
                sum += w->count;
                break;
            case 1:
                sum += w->count > 3 ? weights[0] : weights[1] * w->count;
                break;
            default:
                sum -= 0x1F & ~w->count;
            }
        }
    }
    return sum / (double)(t->words ? t->words : 1);
}

int main(void) {
    static struct queue q;
    static struct table t;
    const char *lines[] = { "the quick brown fox", "jumps over the lazy dog", "the end\n" };
    unsigned int i;

    queue_open(&q);
    for (i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (queue_put(&q, count_words, &t, lines[i]) != DONE) {
            return EXIT_FAILURE;
        }
    }
    q.closed = 1;
    while (queue_step(&q) == DONE) {
        continue;
    }
    return score(&t, 1) > 0.0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
