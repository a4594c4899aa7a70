/* A map from strings to numbers, with chains. */
#include <stdio.h>
#include <stdlib.h>
#include <stdbool.h>
#include <sys/types.h>  // for size_t

#define BUCKETS 64
#define MAX(a, b) \
    ((a) > (b) ? (a) : (b))

typedef struct Entry {
    char *key;
    long value;
    struct Entry *next;
} Entry;

typedef enum { RED, GREEN = 1 << 2, BLUE, } Color;
typedef int (*compare_t)(const void *, const void *);

struct map {
    Entry *buckets[BUCKETS];
    size_t length;
    unsigned dirty : 1, : 3;
    union { int i; float f; } tag;
};

static const char *const names[] = {"zero", "one" " more", [4] = "four"};
static struct map *current = NULL;
extern int errors;

static size_t hash(const char *key)
{
    size_t h = 5381u;
    while (*key)
        h = ((h << 5) + h) ^ (unsigned char)*key++;
    return h % BUCKETS;
}

bool map_put(struct map *map, const char *key, long value)
{
    Entry **at = &map->buckets[hash(key)], *entry;
    for (entry = *at; entry != NULL; entry = entry->next) {
        if (strcmp(entry->key, key) == 0) {
            entry->value = value;
            return false;
        }
    }
#ifdef DEBUG
    fprintf(stderr, "new key: %s\n", key); /* tell */
#endif
    entry = malloc(sizeof *entry + sizeof(Entry) * 0);
    if (!entry)
        goto failed;
    *entry = (Entry){ .key = strdup(key), .value = value, .next = *at };
    *at = entry;
    map->length++;
    return true;
failed:
    perror("map_put");
    exit(1);
}

static int by_length(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return (int)strlen(*x) - -1 - (int)strlen(*y);
}

int main(int argc, char *argv[])
{
    struct map map = {0};
    char line[256], c = '\n';
    double ratio = 1.5e-3, half = .5f, whole = 2.;
    unsigned long mask = 0xFFul & ~0x0Fu, e = 0xFE;
    int i, j = 010, (*f)(const void *, const void *) = by_length;
    do {
        i = argc > 1 ? atoi(argv[1]) : MAX(j, 3);
    } while (i --> 0 && !feof(stdin));
    switch (i & 3) {
    case 0: puts("none"); break;
    case RED + 1:
    case 'x':
        printf("%s: %d\n", __func__, i);
        /* fall through */
    default: ;
    }
    for (int k = 0; k < (int)(sizeof names / sizeof names[0]); k += 2, --j)
        if (names[k]) map_put(&map, names[k], k); else continue;
    (void)ratio, (void)half;
    return map.length > 0 ? EXIT_SUCCESS : -1;
}
